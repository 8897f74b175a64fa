/**
 * The tabs below the pictures: further questions, each answered by a module of its own that is fetched and mounted when its tab
 * is opened for the first time. Nothing of a tab runs before that, and nothing while another is open.
 *
 * A tab is one entry in `TABS`, and words for it: `tab_NAME` on the tab, `tab_NAME_about` as a line below it. `needs` names
 * the functions of the server without which there is nothing to show: on a page without them the tab is not there. `load`
 * returns `mount`, which gets the `Tools` and returns a `View`: its element becomes the tab's panel, its `update` is called
 * with the state and what changed since it was called last (everything, the first time), only while the tab is open, and not
 * for what the pointer is over or what is said elsewhere. Which tab is open is part of the state, so links bring it back.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').Host} Host
 * @typedef {import('./types.js').View} View
 * @typedef {import('./state.js').Store} Store
 *
 * @typedef {object} Tools  What a tab works with.
 * @property {Store} store
 * @property {() => Translate} words
 * @property {Host} host
 *
 * @typedef {(tools: Tools) => View} Mount
 *
 * @typedef {object} Tab
 * @property {string} name
 * @property {string[]} needs  Names of functions of the server.
 * @property {() => Promise<Mount>} load
 */
import { make, mark, say } from './dom.js';

/** @type {readonly (keyof State)[]} What no tab shows. */
const NOT_FOR_TABS = ['hovered', 'remarks', 'notice', 'stops'];

/** @type {Tab[]} In the order in which they stand on the page. */
export const TABS = [
  { name: 'heads', needs: ['ask'], load: async () => (await import('./tabheads.js')).headsTab },
  { name: 'whatif', needs: ['ask'], load: async () => (await import('./tabwhatif.js')).whatIfTab },
  { name: 'compare', needs: ['ask'], load: async () => (await import('./tabcompare.js')).compareTab },
  { name: 'inside', needs: ['ask'], load: async () => (await import('./tabinside.js')).insideTab },
  { name: 'training', needs: ['training_run', 'training_moment'], load: async () => (await import('./training.js')).trainingTab },
  { name: 'experiments', needs: ['experiment_results'], load: async () => (await import('./tabexperiments.js')).experimentsTab },
  { name: 'model', needs: ['ask'], load: async () => (await import('./tabmodel.js')).modelTab },
];

/**
 * The row of tabs and the panel of the open one. A click or Enter opens a tab, and closes the open one; arrow keys, Home and End
 * move along the row without opening anything, as opening asks the server.
 *
 * @param {Tools} tools
 * @param {Tab[]} [all]
 * @returns {View}
 */
export function tabsView(tools, all = TABS) {
  const { store, words, host } = tools;
  const tabs = all.filter(({ needs }) => needs.every((name) => name in host.server));
  const row = make('div', 'mg-tabs', { role: 'tablist' });
  const about = make('p', 'mg-hint mg-tabs-about');
  const element = make('section', 'mg-panel mg-area-tabs', {}, [row, about]);
  element.hidden = tabs.length === 0;
  const parts = tabs.map((tab) => new Part(tab, tools));
  for (const part of parts) {
    row.append(part.button);
    element.append(part.panel);
  }
  /** Where the arrow keys are. */
  let focused = 0;

  row.addEventListener('keydown', (event) => {
    const last = parts.length - 1;
    const places = { ArrowLeft: focused === 0 ? last : focused - 1, ArrowRight: focused === last ? 0 : focused + 1, Home: 0, End: last };
    const place = /** @type {Record<string, number>} */ (places)[event.key];
    if (place !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      focus(place);
      parts[place].button.focus();
    }
  });
  parts.forEach(({ button, name }, index) =>
    button.addEventListener('click', () => {
      focus(index);
      store.set({ tab: store.state.tab === name ? null : name });
    }),
  );

  /** @param {number} place */
  function focus(place) {
    focused = place;
    parts.forEach(({ button }, index) => mark(button, 'tabindex', index === place ? '0' : '-1'));
  }
  focus(0);

  return {
    element,
    update(state, changed) {
      if (changed.has('tab')) {
        focus(Math.max(0, parts.findIndex(({ name }) => name === state.tab)));
      }
      if (changed.has('tab') || changed.has('language')) {
        mark(row, 'aria-label', words()('tabs'));
        const { tab } = state;
        say(about, words()(parts.some(({ name }) => name === tab) ? `tab_${tab}_about` : 'tabs_about'));
      }
      for (const part of parts) {
        part.update(state, changed);
      }
    },
  };
}

/** One tab with its panel. */
class Part {
  #tools;
  #load;
  /** @type {View | null} */
  #view = null;
  #isLoading = false;
  /** @type {Set<keyof State>} What changed while the panel did not follow. */
  #missed = new Set();

  /** @param {Tab} tab @param {Tools} tools */
  constructor({ name, load }, tools) {
    this.name = name;
    this.#load = load;
    this.#tools = tools;
    this.button = make('button', 'mg-tab', { type: 'button', role: 'tab', id: `mg-tab-${name}`, 'aria-controls': `mg-panel-${name}` });
    this.panel = make('div', 'mg-tab-panel', { role: 'tabpanel', id: `mg-panel-${name}`, 'aria-labelledby': `mg-tab-${name}` });
  }

  /** @param {State} state @param {Set<keyof State>} changed */
  update(state, changed) {
    const { name } = this;
    const isOpen = state.tab === name;
    if (changed.has('language')) {
      say(this.button, this.#tools.words()(`tab_${name}`));
    }
    mark(this.button, 'aria-selected', String(isOpen));
    this.panel.hidden = !isOpen;
    changed.forEach((each) => this.#missed.add(each));
    NOT_FOR_TABS.forEach((each) => this.#missed.delete(each));
    if (!isOpen || state.analysis === null || (this.#view !== null && this.#missed.size === 0)) {
      return;
    }
    if (this.#view === null) {
      void this.#mount();
      return;
    }
    const missed = this.#missed;
    this.#missed = new Set();
    this.#view.update(state, missed);
  }

  async #mount() {
    if (this.#isLoading) {
      return;
    }
    this.#isLoading = true;
    mark(this.panel, 'aria-busy', 'true');
    const mount = await this.#load();
    this.#view = mount(this.#tools);
    this.panel.append(this.#view.element);
    this.panel.removeAttribute('aria-busy');
    const { state } = this.#tools.store;
    this.#missed = new Set(/** @type {(keyof State)[]} */ (Object.keys(state)));
    this.update(state, new Set());
  }
}
