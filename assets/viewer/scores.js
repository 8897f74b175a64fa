/**
 * What a head mostly does, read off its scores.
 *
 * @typedef {import('./decode.js').Analysis} Analysis
 */

/** The scores that are shares of attention, so that the largest says what a head mostly does. */
const SHARES = ['previous', 'self', 'first', 'duplicate', 'induction', 'word_start'];
/** A head whose largest share is smaller does nothing that has a name. */
const WORTH_NAMING = 0.3;

/**
 * The score that says most about a head, or null.
 *
 * @param {Analysis} analysis
 * @param {number} layer
 * @param {number} head
 * @returns {{name: string, value: number} | null}
 */
export function strongest(analysis, layer, head) {
  const shares = analysis.scores
    .filter((name) => SHARES.includes(name))
    .map((name) => ({ name, value: analysis.score(name, layer, head) }))
    .filter(({ value }) => value >= WORTH_NAMING)
    .sort((a, b) => b.value - a.value);
  return shares[0] ?? null;
}

/**
 * The head to look at first: the one that most clearly does something, else the first.
 *
 * @param {Analysis} analysis
 * @returns {{layer: number, head: number}}
 */
export function mostTelling(analysis) {
  let best = { layer: 0, head: 0, value: 0 };
  for (let layer = 0; layer < analysis.layers; layer += 1) {
    for (let head = 0; head < analysis.heads; head += 1) {
      const { value } = strongest(analysis, layer, head) ?? { value: 0 };
      best = value > best.value ? { layer, head, value } : best;
    }
  }
  return { layer: best.layer, head: best.head };
}

/**
 * What stands on a head's thumbnail: the chosen score, else the strongest one.
 *
 * @param {Readonly<import('./types.js').State>} state
 * @param {number} layer
 * @param {number} head
 * @returns {{name: string, value: number} | null}
 */
export function badgeOf({ analysis, badge }, layer, head) {
  if (analysis === null) {
    return null;
  }
  if (badge === null) {
    return strongest(analysis, layer, head);
  }
  // What the page knows of this very text is never out of date.
  const known = badge.source === 'text' && analysis.scores.includes(badge.name);
  const value = known ? analysis.score(badge.name, layer, head) : (badge.values?.[layer]?.[head] ?? Number.NaN);
  return Number.isNaN(value) ? null : { name: badge.name, value };
}
