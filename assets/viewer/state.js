/**
 * The one state of the viewer. Everything drawn is a function of it; every control does nothing but change it.
 *
 * @typedef {import('./types.js').State} State
 */
import { branchesWith } from './branches.js';
import { mostTelling } from './scores.js';
import { stepAfter } from './time.js';
import { NO_CHANGE } from './whatif.js';

/**
 * Hold a state and tell the views what changed.
 *
 * @param {State} initial
 */
export function createStore(initial) {
  /** @type {State} */
  let state = { ...initial };
  /** @type {((state: State, changed: Set<keyof State>) => void)[]} */
  const listeners = [];

  return {
    /** @returns {Readonly<State>} */
    get state() {
      return state;
    },
    /**
     * Change some of the state; the listeners run once, and only if something is different now.
     *
     * @param {Partial<State>} patch
     */
    set(patch) {
      const names = /** @type {(keyof State)[]} */ (Object.keys(patch));
      const changed = new Set(names.filter((name) => !Object.is(state[name], patch[name])));
      if (changed.size === 0) {return;}
      state = { ...state, ...patch };
      for (const listener of listeners) {listener(state, changed);}
    },
    /** @param {(state: State, changed: Set<keyof State>) => void} listener */
    subscribe(listener) {
      listeners.push(listener);
    },
  };
}

/** @typedef {ReturnType<typeof createStore>} Store */

/** @type {Omit<State, 'theme' | 'language'>} */
export const NOTHING_YET = {
  analysis: null,
  whole: null,
  step: null,
  choices: null,
  playing: false,
  colouring: 'attention',
  branches: [],
  branch: 0,
  stream: null,
  notice: null,
  layer: 0,
  head: 0,
  token: null,
  direction: 'to',
  hovered: null,
  scale: 'sqrt',
  range: 'fixed',
  maskFirst: false,
  table: false,
  tab: null,
  view: 'raw',
  viewed: null,
  badge: null,
  whatIf: NO_CHANGE,
  order: { by: 'position', down: false },
  stops: 0,
  fetched: 0,
  remarks: [],
};

/**
 * The true position of the chosen token, held inside the window; null while nothing was analysed.
 *
 * @param {Readonly<State>} state
 * @returns {number | null}
 */
export function chosenToken({ analysis, token }) {
  if (analysis === null || analysis.length === 0) {return null;}
  const last = analysis.start + analysis.length - 1;
  return Math.min(Math.max(token ?? last, analysis.start), last);
}

/**
 * The true position of the token whose attention the strip shows: the one under the pointer, else the chosen one.
 *
 * @param {Readonly<State>} state
 * @returns {number | null}
 */
export function shownToken(state) {
  const { analysis, hovered, direction } = state;
  if (analysis !== null && hovered !== null) {
    const position = direction === 'to' ? hovered.query : hovered.key;
    if (position >= analysis.start && position < analysis.start + analysis.length) {return position;}
  }
  return chosenToken(state);
}

/**
 * The step whose choices are on the page: the one that is shown, while its predicting row is chosen.
 *
 * @param {Readonly<State>} state
 * @returns {number | null}
 */
export function askedStep(state) {
  const predicted = state.analysis?.predicts ?? null;
  return predicted !== null && chosenToken(state) === predicted - 1 ? predicted : null;
}

/**
 * What a token attends to, or what attends to it, by true position; null where nothing is known yet.
 *
 * @param {Readonly<State>} state
 * @param {number | null} position The token's true position.
 * @returns {{first: number, weights: Float32Array} | null}
 */
export function attentionOf({ analysis, layer, head, direction }, position) {
  const pattern = analysis?.head(layer, head) ?? null;
  if (analysis === null || pattern === null || position === null) {
    return null;
  }
  const index = position - analysis.start;
  return direction === 'to'
    ? { first: analysis.start, weights: pattern.row(index) }
    : { first: position, weights: pattern.column(index) };
}

/**
 * The changes that a new analysis brings: the choice is kept where it still means something.
 *
 * @param {Readonly<State>} state
 * @param {import('./decode.js').Analysis} analysis
 * @returns {Partial<State>}
 */
export function withAnalysis(state, analysis) {
  const last = analysis.start + analysis.length - 1;
  const before = state.whole?.checkpoint;
  const { name, n_layer: layers, n_head: heads } = analysis.checkpoint;
  const sameModel = before?.name === name && before.n_layer === layers && before.n_head === heads;
  const keep = state.token !== null && state.token >= analysis.start && state.token < last;
  const step = sameModel ? stepAfter(state, analysis) : null;
  return {
    whole: analysis,
    step,
    // At a step the pictures stay until `moments.js` has those of the new text.
    ...(step === null ? { analysis, choices: null, playing: false } : {}),
    ...branchesWith(state, analysis),
    notice: null,
    hovered: null,
    ...(sameModel ? {} : { ...mostTelling(analysis), whatIf: NO_CHANGE, badge: null }),
    token: keep || step !== null ? state.token : null,
    // What streamed in before this analysis is in it, or was stopped.
    stream: state.stream !== null && state.stream.request > analysis.request ? state.stream : null,
  };
}
