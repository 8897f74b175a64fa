/**
 * The chosen token's row, or column, as a table: every weight with its token, its true position and its rank.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Order} Order
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./state.js').Store} Store
 *
 * @typedef {object} Entry
 * @property {number} position
 * @property {number} weight
 * @property {number} rank  1 has the largest weight.
 */
import { make, mark, say } from './dom.js';
import { digits, glyph, named } from './glyphs.js';
import { attentionOf, chosenToken } from './state.js';

const COLUMNS = /** @type {const} */ (['position', 'token', 'weight', 'rank']);
/** The columns that a table can be sorted by, each with whether the largest comes first when it is chosen. */
const SORTED = /** @type {const} */ ({ position: false, weight: true });
const FOLLOWED = /** @type {(keyof State)[]} */ (['analysis', 'layer', 'head', 'fetched', 'token', 'direction', 'table', 'order', 'language']);

/**
 * The rows of the table in their order. Equal weights rank by position.
 *
 * @param {{first: number, weights: Float32Array}} attention
 * @param {Order} order
 * @returns {Entry[]}
 */
export function entriesOf({ first, weights }, { by, down }) {
  const ranked = Array.from(weights, (weight, index) => ({ position: first + index, weight, rank: 0 }));
  ranked.sort((a, b) => b.weight - a.weight || a.position - b.position);
  ranked.forEach((entry, index) => {
    entry.rank = index + 1;
  });
  if (by === 'position') {
    ranked.sort((a, b) => a.position - b.position);
    return down ? ranked.reverse() : ranked;
  }
  return down ? ranked : ranked.reverse();
}

/** @returns {HTMLTableRowElement} */
function emptyRow() {
  return make('tr', '', {}, [make('td'), make('th', '', { scope: 'row' }), make('td'), make('td')]);
}

/**
 * @param {Store} store
 * @param {() => Translate} words
 * @returns {View}
 */
export function tableView(store, words) {
  const caption = make('caption');
  const headings = COLUMNS.map((column) => make('th', `mg-col-${column}`, { scope: 'col' }));
  const buttons = headings.map((heading, index) => {
    const by = COLUMNS[index];
    if (by !== 'position' && by !== 'weight') {
      return null;
    }
    const button = heading.appendChild(make('button', 'mg-sort', { type: 'button' }));
    button.addEventListener('click', () => {
      const { order } = store.state;
      store.set({ order: { by, down: order.by === by ? !order.down : SORTED[by] } });
    });
    return button;
  });
  const body = make('tbody');
  const table = make('table', 'mg-weights', {}, [caption, make('thead', '', {}, [make('tr', '', {}, headings)]), body]);
  const element = make('div', 'mg-table', { id: 'mg-table', role: 'region', tabindex: '0' }, [table]);
  element.hidden = true;

  /** @param {Readonly<State>} state */
  function label({ order }) {
    headings.forEach((heading, index) => {
      const column = COLUMNS[index];
      say(buttons[index] ?? heading, words()(`table_${column}`));
      if (buttons[index] !== null) {
        mark(heading, 'aria-sort', order.by !== column ? 'none' : order.down ? 'descending' : 'ascending');
      }
    });
    mark(element, 'aria-label', words()('table'));
  }

  /** Rows are made once and written anew, so that following a selection costs little. @param {Readonly<State>} state */
  function write(state) {
    const { analysis, layer, head, direction } = state;
    const position = chosenToken(state);
    const attention = attentionOf(state, position);
    if (analysis === null || position === null || attention === null) {
      body.replaceChildren();
      return;
    }
    const subject = words()(`readout_${direction}`, { token: named(analysis.token(position), position) });
    say(caption, `L${layer}H${head}: ${subject}`);
    const entries = entriesOf(attention, state.order);
    while (body.rows.length > entries.length) {
      body.deleteRow(-1);
    }
    const missing = entries.length - body.rows.length;
    body.append(...Array.from({ length: missing }, emptyRow));
    entries.forEach((entry, index) => {
      const texts = [String(entry.position), glyph(analysis.token(entry.position)), digits(entry.weight), String(entry.rank)];
      Array.from(body.rows[index].cells).forEach((cell, column) => say(cell, texts[column]));
    });
  }

  element.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      store.set({ table: false });
    }
  });

  return {
    element,
    update(state, changed) {
      if (!FOLLOWED.some((each) => changed.has(each))) {
        return;
      }
      element.hidden = !state.table;
      if (state.table) {
        label(state);
        write(state);
      } else {
        body.replaceChildren();
      }
    },
  };
}
