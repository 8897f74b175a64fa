/**
 * The tab "Inside": who wrote what into a logit, what each layer would say, what a head is wired to do. One of them at a time, and only that
 * one asks.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 */
import { chooser } from './chooser.js';
import { circuitsView } from './circuits.js';
import { make } from './dom.js';
import { lensView } from './lens.js';
import { termsView } from './terms.js';

const PARTS = /** @type {const} */ (['terms', 'lens', 'circuits']);

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function insideTab(tools) {
  const { store, words } = tools;
  const views = { terms: termsView(tools), lens: lensView(tools), circuits: circuitsView(tools) };
  /** @type {typeof PARTS[number]} */
  let part = 'terms';
  const choice = chooser(PARTS, (name) => {
    part = name;
    show(store.state, new Set());
  });
  const element = make('div', 'mg-swept', {}, [make('div', 'mg-inline', {}, [choice.element]), ...Object.values(views).map((view) => view.element)]);

  /** What changed while a part was not looked at. */
  const missed = Object.fromEntries(PARTS.map((name) => [name, /** @type {Set<keyof State>} */ (new Set())]));

  /** @param {State} state @param {Set<keyof State>} changed */
  function show(state, changed) {
    choice.name(words()('inside'), (name) => words()(`inside_${name}`));
    choice.show(part);
    for (const name of PARTS) {
      views[name].element.hidden = name !== part;
      changed.forEach((each) => missed[name].add(each));
    }
    const unseen = missed[part];
    missed[part] = new Set();
    views[part].update(state, unseen);
  }

  return { element, update: show };
}
