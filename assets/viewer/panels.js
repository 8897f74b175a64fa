/**
 * The framed parts of the page: each puts a title, its controls and its legend around one view.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./state.js').Store} Store
 */
import { scoresView } from './about.js';
import { chooser } from './chooser.js';
import { make, mark, say } from './dom.js';
import { named } from './glyphs.js';
import { legendView } from './legend.js';
import { picker } from './picker.js';
import { tableView } from './table.js';
import { surpriseLegend } from './surprise.js';
import { titled, VIEWS, viewsOf } from './views.js';

const DIRECTIONS = /** @type {const} */ (['to', 'by']);
const COLOURINGS = /** @type {const} */ (['attention', 'surprise']);

/**
 * The text with its attention: title, direction, the strip, the read-out.
 *
 * @param {Store} store
 * @param {() => Translate} words
 * @param {View} strip
 * @param {View} readout
 * @param {ReturnType<typeof import('./share.js').shareView>} share
 * @returns {View}
 */
export function stripPanel(store, words, strip, readout, share) {
  const title = make('h2', 'mg-title');
  const legend = make('p', 'mg-legend');
  const keys = ['outside', 'prompt', 'generated'].map((name) => make('span', `mg-key mg-key-${name}`));
  legend.append(...keys);
  const count = make('span', 'mg-count');
  const colouring = chooser(COLOURINGS, (value) => store.set({ colouring: value }));
  const direction = chooser(DIRECTIONS, (value) => store.set({ direction: value }));
  const choices = make('div', 'mg-choosers', {}, [share.button, colouring.element, direction.element]);
  const header = make('header', 'mg-header', {}, [title, count, legend, choices]);
  const surprise = surpriseLegend(words);
  const spelling = make('p', 'mg-count mg-spelling');
  const parts = [header, spelling, share.view.element, strip.element, surprise.element, readout.element];
  const element = make('section', 'mg-panel mg-area-strip', {}, parts);

  return {
    element,
    update(state, changed) {
      if (changed.has('language')) {
        say(title, words()('strip'));
        mark(element, 'aria-label', words()('strip'));
        direction.name(words()('direction'), (value) => words()(`direction_${value}`));
        colouring.name(words()('colouring'), (value) => words()(`colouring_${value}`));
      }
      direction.show(state.direction);
      colouring.show(state.colouring);
      const { analysis, whole, stream } = state;
      if (analysis !== null && ['analysis', 'stream', 'language'].some((name) => changed.has(/** @type {keyof State} */ (name)))) {
        const { length, cropped, checkpoint } = analysis;
        const generated = stream !== null || analysis.promptLength < (whole?.end ?? 0);
        say(count, words()('strip_count', { length, block: checkpoint.block_size }));
        say(keys[0], words()('strip_outside', { count: cropped.length }));
        say(keys[1], words()('strip_prompt'));
        say(keys[2], words()('strip_generated'));
        say(spelling, (whole ?? analysis).respelled.map((change) => words()(`strip_${change}`)).join(' · '));
        spelling.hidden = spelling.textContent === '';
        keys[0].hidden = cropped.length === 0;
        keys[1].hidden = !generated;
        keys[2].hidden = !generated;
      }
      share.view.update(state, changed);
      strip.update(state, changed);
      surprise.update(state, changed);
      readout.update(state, changed);
    },
  };
}

/**
 * All heads, with the way to the chosen one where the page has one column.
 *
 * @param {Store} store
 * @param {() => Translate} words
 * @param {View} overview
 * @param {() => void} toDetail
 * @param {ReturnType<typeof import('./exportmenu.js').exportMenu>} exports
 * @param {boolean} hasViews Whether the cells can show something else than weights.
 * @returns {View}
 */
export function overviewPanel(store, words, overview, toDetail, exports, hasViews) {
  const title = make('h2', 'mg-title');
  const hint = make('p', 'mg-hint');
  const jump = make('button', 'mg-jump', { type: 'button' });
  jump.addEventListener('click', toDetail);
  const views = picker((name) => store.set({ view: VIEWS.find((each) => each === name) ?? 'raw' }));
  views.element.classList.add('mg-view-picker');
  views.element.hidden = !hasViews;
  const controls = make('div', 'mg-steps', {}, [views.element, exports.menu, jump]);
  const header = make('header', 'mg-header', {}, [title, hint, controls, exports.status]);
  const element = make('section', 'mg-panel mg-area-overview', {}, [header, overview.element]);
  return {
    element,
    update(state, changed) {
      say(title, titled(words(), state, words()('overview')));
      if (changed.has('language')) {
        say(hint, words()('overview_hint'));
      }
      views.show(words()('view'), viewsOf(state).map((name) => [name, words()(`view_${name}`)]), state.view);
      say(jump, `L${state.layer}H${state.head} ↓`);
      mark(jump, 'aria-label', words()('overview_jump', { name: `L${state.layer}H${state.head}` }));
      exports.update(state, changed);
      overview.update(state, changed);
    },
  };
}

/**
 * The chosen head: its name, its scores, its picture and what the colours mean.
 *
 * @param {Store} store
 * @param {() => Translate} words
 * @param {View} heatmap
 * @param {() => void} toOverview
 * @param {ReturnType<typeof import('./exportmenu.js').exportMenu>} exports
 * @returns {View}
 */
export function detailPanel(store, words, heatmap, toOverview, exports) {
  const title = make('h2', 'mg-title', { tabindex: '-1' });
  const jump = make('button', 'mg-jump', { type: 'button' });
  jump.addEventListener('click', toOverview);
  const steps = [-1, 1].map((step) => {
    const button = make('button', 'mg-step', { type: 'button' }, [step < 0 ? '‹' : '›']);
    button.addEventListener('click', () => store.set(neighbour(store.state, step)));
    return button;
  });
  const scores = scoresView(words);
  const legend = legendView(store, words);
  const table = tableView(store, words);
  const asTable = make('button', 'mg-step', { type: 'button', 'aria-controls': 'mg-table' });
  asTable.addEventListener('click', () => store.set({ table: !store.state.table }));
  const controls = make('div', 'mg-steps', {}, [exports.menu, asTable, ...steps, jump]);
  const header = make('header', 'mg-header', {}, [title, controls, exports.status]);
  const predicting = make('p', 'mg-predicting');
  const parts = [header, scores.element, heatmap.element, predicting, legend.element, table.element];
  const element = make('section', 'mg-panel mg-area-detail', {}, parts);

  return {
    element,
    update(state, changed) {
      // Measures its labels, so it comes before anything else touches the page.
      heatmap.update(state, changed);
      const { layer, head } = state;
      if (['language', 'layer', 'head', 'analysis', 'view', 'viewed'].some((name) => changed.has(/** @type {keyof State} */ (name)))) {
        const name = `L${layer}H${head}`;
        say(title, titled(words(), state, words()('detail', { layer, head, name })));
      }
      if (changed.has('language')) {
        mark(steps[0], 'aria-label', words()('detail_previous'));
        mark(steps[1], 'aria-label', words()('detail_next'));
        say(jump, words()('detail_jump'));
        say(asTable, words()('table_toggle'));
      }
      const { analysis, whole } = state;
      const predicted = analysis?.predicts ?? null;
      predicting.hidden = predicted === null;
      if (predicted !== null && whole !== null) {
        const token = named(whole.piece(whole.text[predicted]), predicted);
        say(predicting, words()('predicting', { token, query: predicted - 1 }));
      }
      element.classList.toggle('mg-waiting', analysis !== null && analysis.head(layer, head) === null);
      exports.update(state, changed);
      scores.update(state, changed);
      legend.update(state, changed);
      if (changed.has('table') && !state.table && table.element.contains(document.activeElement)) {
        asTable.focus();
      }
      table.update(state, changed);
      mark(asTable, 'aria-expanded', String(state.table));
    },
  };
}

/**
 * The head before or after the chosen one, round the end.
 *
 * @param {Readonly<State>} state
 * @param {number} step
 * @returns {{layer: number, head: number}}
 */
function neighbour({ analysis, layer, head }, step) {
  const [layers, heads] = [analysis?.layers ?? 1, analysis?.heads ?? 1];
  const index = (layer * heads + head + step + layers * heads) % (layers * heads);
  return { layer: Math.floor(index / heads), head: index % heads };
}
