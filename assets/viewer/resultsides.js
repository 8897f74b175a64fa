/**
 * The variants of an experiment side by side: what the model of one seed writes, all its heads on the same short text, and the
 * chosen one large. Each has a state of its own, so that any head of one can stand beside any head of another.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Results} Results
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {Results['sides'][number]} Side
 */
import { make, mark, say } from './dom.js';
import { HeatmapView } from './heatmap.js';
import { OverviewView } from './overview.js';
import { createStore, NOTHING_YET } from './state.js';

/** @param {() => Translate} words */
export function resultSides(words) {
  const element = make('div', 'mg-sides mg-result-sides');
  /** @type {Partial<State>} */
  let followed = {};
  /** @type {ReturnType<typeof oneSide>[]} */
  let all = [];
  return {
    element,
    /** @param {Partial<State>} state What the pictures take over from the page. */
    follow(state) {
      followed = state;
      all.forEach(({ store }) => store.set(state));
    },
    /** @param {Side[]} sides */
    show(sides) {
      all = sides.map((side) => oneSide(side, words, followed));
      element.replaceChildren(...all.map((each) => each.element));
      all.forEach(({ draw }) => draw());
    },
  };
}

/**
 * @param {Side} side
 * @param {() => Translate} words
 * @param {Partial<State>} followed
 */
function oneSide({ variant, prompt, sample, analysis }, words, followed) {
  const store = createStore({ ...NOTHING_YET, theme: 'light', language: 'en', ...followed, analysis, whole: analysis });
  const overview = new OverviewView(store, words);
  const title = make('h5', 'mg-subtitle');
  const missing = make('p', 'mg-note');
  const written = make('p', 'mg-sample', {}, [make('span', 'mg-typed', {}, [prompt]), make('span', 'mg-written', {}, [sample])]);
  const element = make('section', 'mg-side', {}, [make('h4', '', {}, [variant]), written]);
  const heatmap = new HeatmapView(store, words, (_analysis, layer, head) => mark(element, 'data-shown', `${layer}:${head}`));
  element.append(...(analysis === null ? [missing] : [overview.element, make('div', '', {}, [title, heatmap.element])]));
  /** @param {State} state @param {Set<keyof State>} changed */
  const update = (state, changed) => {
    overview.update(state, changed);
    heatmap.update(state, changed);
    say(title, `L${state.layer}H${state.head}`);
    say(missing, words()('experiments_no_picture'));
  };
  store.subscribe(update);
  return {
    element,
    store,
    /** Draw and name everything, whatever changed. */
    draw: () => update(store.state, new Set(/** @type {(keyof State)[]} */ (Object.keys(store.state)))),
  };
}
