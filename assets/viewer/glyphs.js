/**
 * How a token and a weight are written: invisible characters get a visible sign, everything else stays as it is. `minigpt/figures.py` has
 * the same table.
 */

/** @type {Readonly<Record<string, string>>} */
export const GLYPHS = {
  ' ': '␣',
  '\n': '⏎',
  '\r': '␍',
  '\t': '⇥',
  '\u00a0': '⍽',
  '\u007f': '␡',
};
export const EMPTY = '∅';

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}]/u;
const MARK = /^\p{M}/u;
const JOINED = /\u200c|\u200d|[\ufe00-\ufe0f]|[\u{e0020}-\u{e007f}]/u;

/**
 * A character's sign where it would not be seen.
 *
 * @param {string} character
 * @returns {string}
 */
function sign(character) {
  const known = GLYPHS[character];
  if (known !== undefined) {return known;}
  const code = /** @type {number} */ (character.codePointAt(0));
  if (code < 0x20) {return String.fromCodePoint(0x2400 + code);}
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/**
 * The text of a token as it is shown: nothing in it is invisible, and it never runs into its neighbours.
 *
 * Joiners and variation selectors stay inside a longer token (they shape what stands before them) and get a sign alone.
 *
 * @param {string} token
 * @returns {string}
 */
export function glyph(token) {
  if (token === '') {return EMPTY;}
  let shown = '';
  for (const character of token) {
    const shapes = shown !== '' && JOINED.test(character);
    shown += INVISIBLE.test(character) && !shapes ? sign(character) : character;
  }
  return MARK.test(shown) ? `◌${shown}` : shown;
}

/**
 * A token cut to a width, for places that have no more room.
 *
 * @param {string} token
 * @param {number} limit Characters, at least 2.
 * @returns {string}
 */
export function shortGlyph(token, limit) {
  const shown = Array.from(glyph(token));
  return shown.length <= limit ? shown.join('') : `${shown.slice(0, limit - 1).join('')}…`;
}

/**
 * A token with its true position: `'w' (12)`.
 *
 * @param {string} token
 * @param {number} position
 * @returns {string}
 */
export function named(token, position) {
  return `'${glyph(token)}' (${position})`;
}

/**
 * A weight with three digits, as everywhere on the page.
 *
 * @param {number} weight 0 to 1.
 * @returns {string}
 */
export function digits(weight) {
  return weight > 0 && weight < 0.0005 ? '<0.001' : weight.toFixed(3);
}

/**
 * Text that Plotly shows as it is: it reads a few tags, entities and formulas in every label.
 *
 * @param {string} text
 * @returns {string}
 */
export function escapeForPlotly(text) {
  return text.replace(/[&<>$]/g, (character) => `&#${character.charCodeAt(0)};`);
}
