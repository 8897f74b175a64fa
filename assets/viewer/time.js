/**
 * The steps of a text: each generated token is one, called by its true position. The model predicted it from the tokens before
 * it, of which it saw the last `block_size`; the predicting row is the last one of that window.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./decode.js').Analysis} Analysis
 */

/**
 * The first and the last step, or null where nothing was generated.
 *
 * @param {Analysis | null} whole
 * @returns {{first: number, last: number} | null}
 */
export function stepsOf(whole) {
  if (whole === null || whole.end <= whole.promptLength) {
    return null;
  }
  return { first: Math.max(1, whole.promptLength), last: whole.end - 1 };
}

/**
 * True position of the first token that the model saw when it predicted a token.
 *
 * @param {Analysis} whole
 * @param {number} step
 * @returns {number}
 */
export function windowStart(whole, step) {
  return Math.max(0, step - whole.checkpoint.block_size);
}

/**
 * The changes that lead to a step; past the last one to the whole text.
 *
 * @param {Readonly<State>} state
 * @param {number | null} step
 * @returns {Partial<State>}
 */
export function goTo({ whole }, step) {
  const steps = stepsOf(whole);
  const reached = steps === null || step === null || step > steps.last ? null : Math.max(step, steps.first);
  // The predicting row is the last: what was chosen before gives way to it.
  return { step: reached, token: null, hovered: null, ...(reached === null ? { playing: false } : {}) };
}

/**
 * The changes that begin a replay: from the step that is shown, or from the first.
 *
 * @param {Readonly<State>} state
 * @returns {Partial<State>}
 */
export function play(state) {
  const steps = stepsOf(state.whole);
  return steps === null ? {} : { ...goTo(state, state.step ?? steps.first), playing: true };
}

/**
 * The step once another text has come: the same where that text has the same tokens up to it.
 *
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @returns {number | null}
 */
export function stepAfter({ whole, step }, analysis) {
  if (whole === null || step === null || whole.promptLength !== analysis.promptLength || step >= analysis.end) {
    return null;
  }
  const [before, after] = [whole.text, analysis.text];
  return after.slice(0, step + 1).every((id, index) => id === before[index]) ? step : null;
}
