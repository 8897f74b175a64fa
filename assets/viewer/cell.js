/**
 * A cell of the heatmap for people without a pointer: arrow keys move it, Enter chooses its token, + and − zoom around it.
 *
 * The cell is the same `hovered` that a pointer sets, marked as reached by keys, so that all that follows a pointer follows it.
 *
 * @typedef {import('./types.js').Cell} Cell
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./figure.js').Frame} Frame
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./state.js').Store} Store
 */
import { make, mark, say } from './dom.js';
import { whole } from './figure.js';
import { attentionOf, chosenToken } from './state.js';

const PAGE = 10;
/** Fewest cells on one side of what is shown. */
const CLOSEST = 4;

/**
 * The cell that a key leads to, inside the triangle that has weights; null where the key means nothing.
 *
 * @param {Cell} cell
 * @param {KeyboardEvent} event
 * @param {{start: number, end: number}} analysis
 * @returns {Cell | null}
 */
export function moved({ query, key }, event, { start, end }) {
  /** @type {Record<string, Cell>} */
  const places = {
    ArrowUp: { query: query - 1, key },
    ArrowDown: { query: query + 1, key },
    ArrowLeft: { query, key: key - 1 },
    ArrowRight: { query, key: key + 1 },
    PageUp: { query: query - PAGE, key },
    PageDown: { query: query + PAGE, key },
    Home: { query: event.ctrlKey ? start : query, key: start },
    End: event.ctrlKey ? { query: end - 1, key: end - 1 } : { query, key: query },
  };
  const place = places[event.key];
  if (place === undefined) {
    return null;
  }
  const row = Math.min(Math.max(place.query, start), end - 1);
  return { query: row, key: Math.min(Math.max(place.key, start), row) };
}

/**
 * A frame of the same shape around a cell, inside the map.
 *
 * @param {Frame} frame
 * @param {Cell} cell
 * @param {number} factor Below 1 shows less, above 1 more.
 * @param {{start: number, end: number}} analysis
 * @returns {Frame | null} Null for the whole map.
 */
export function zoomed(frame, cell, factor, { start, end }) {
  /** @param {[number, number]} range @param {number} place @returns {[number, number]} */
  const around = ([from, to], place) => {
    const size = Math.min(Math.max(Math.round((to - from) * factor), CLOSEST), end - start);
    const first = Math.min(Math.max(Math.round(place - size / 2), start), end - size);
    return [first - 0.5, first + size - 0.5];
  };
  const next = { x: around(frame.x, cell.key), y: around(frame.y, cell.query) };
  return [next.x, next.y].every(([from, to]) => to - from >= end - start) ? null : next;
}

/** @param {Frame} frame @param {Cell} cell @returns {boolean} */
function visible({ x, y }, { query, key }) {
  return key > x[0] && key < x[1] && query > y[0] && query < y[1];
}

/**
 * Keys on the heatmap, and the frame around the cell that they lead to.
 *
 * @param {Store} store
 * @param {HTMLElement} map Takes the focus.
 * @param {{frame: () => Frame | null, zoomTo: (frame: Frame | null) => void}} view What is shown of the map.
 */
export function followKeys(store, map, view) {
  const frame = make('div', 'mg-cell');
  const help = make('p', 'mg-keys', { id: 'mg-keys' });
  map.append(make('div', 'mg-cells', {}, [frame]), help);
  mark(map, 'role', 'application');
  mark(map, 'tabindex', '0');
  mark(map, 'aria-describedby', 'mg-keys');
  frame.hidden = true;

  /** Where the keys begin: in the chosen row or column, at its largest weight. @returns {Cell | null} */
  function begin() {
    const { state } = store;
    const token = chosenToken(state);
    const attention = attentionOf(state, token);
    if (token === null || attention === null) {
      return null;
    }
    const { first, weights } = attention;
    const other = first + weights.indexOf(Math.max(...weights));
    return state.direction === 'to' ? { query: token, key: other } : { query: other, key: token };
  }

  /** @param {Cell | null} cell */
  function look(cell) {
    store.set({ hovered: cell === null ? null : { ...cell, keys: true } });
    const shown = view.frame();
    const { analysis } = store.state;
    if (cell !== null && shown !== null && analysis !== null && !visible(shown, cell)) {
      view.zoomTo(zoomed(shown, cell, 1, analysis));
    }
  }

  /** Put the frame around the cell. */
  function place() {
    const { hovered: cell } = store.state;
    const shown = view.frame();
    frame.hidden = cell?.keys !== true || shown === null || !visible(shown, cell);
    if (cell === null || shown === null || frame.hidden) {
      return;
    }
    const [width, height] = [shown.x[1] - shown.x[0], shown.y[1] - shown.y[0]];
    frame.style.setProperty('left', `${((cell.key - shown.x[0]) / width) * 100}%`);
    frame.style.setProperty('top', `${((cell.query - shown.y[0]) / height) * 100}%`);
    frame.style.setProperty('width', `${100 / width}%`);
    frame.style.setProperty('height', `${100 / height}%`);
  }

  /** @param {KeyboardEvent} event @returns {boolean} Whether the key meant something. */
  function press(event) {
    const { analysis, direction, hovered } = store.state;
    const shown = view.frame();
    if (analysis === null || shown === null) {
      return false;
    }
    const cell = hovered?.keys === true ? hovered : null;
    const start = cell ?? begin();
    const zoom = { '+': 0.5, '=': 0.5, '-': 2, '0': Infinity }[event.key];
    if (event.key === 'Escape') {
      if (cell === null && sameFrame(shown, whole(analysis))) {
        return false;
      }
      return cell === null ? (view.zoomTo(null), true) : (look(null), true);
    }
    if (start === null) {
      return false;
    }
    if (zoom !== undefined) {
      view.zoomTo(zoom === Infinity ? null : zoomed(shown, start, zoom, analysis));
      look(start);
      return true;
    }
    if (event.key === 'Enter' || event.key === ' ') {
      store.set({ token: direction === 'to' ? start.query : start.key });
      return true;
    }
    const next = cell === null && event.key.startsWith('Arrow') ? start : moved(start, event, analysis);
    if (next !== null) {
      look(next);
    }
    return next !== null;
  }

  map.addEventListener('keydown', (event) => {
    if (event.target !== map || event.altKey || event.metaKey || (event.ctrlKey && !['Home', 'End'].includes(event.key))) {
      return;
    }
    if (press(event)) {
      event.preventDefault();
    }
  });
  map.addEventListener('focus', () => {
    if (map.matches(':focus-visible')) {
      look(begin());
    }
  });
  map.addEventListener('blur', () => {
    if (store.state.hovered?.keys === true) {
      look(null);
    }
  });

  // What a pointer shows can be sent away as well, wherever the focus is.
  document.addEventListener('keydown', (event) => {
    const { hovered } = store.state;
    if (event.key === 'Escape' && hovered !== null && hovered.keys !== true) {
      store.set({ hovered: null });
    }
  });

  return {
    frame,
    place,
    /** @param {Translate} words @param {string} head The name of the head that is shown. */
    name(words, head) {
      mark(map, 'aria-label', words('map', { name: head }));
      say(help, words('map_keys'));
    },
  };
}

/** @param {Frame} first @param {Frame} second @returns {boolean} */
function sameFrame(first, second) {
  return [0, 1].every((end) => first.x[end] === second.x[end] && first.y[end] === second.y[end]);
}
