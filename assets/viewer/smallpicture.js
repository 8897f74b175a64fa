/**
 * A matrix of numbers as a small picture: a row for each token, or for some tokens together, and a row's token marked.
 *
 * @typedef {import('./types.js').Theme} Theme
 * @typedef {import('./unpack.js').Numbers} Numbers
 *
 * @typedef {object} Drawing
 * @property {Numbers} numbers
 * @property {number} tokens  Rows before some were put together.
 * @property {number} across  Columns before some were put together.
 * @property {'signed' | 'weights'} kind  Weights have the colours of attention everywhere on the page, and no future.
 * @property {Theme} theme
 * @property {Numbers} [before]  What the numbers were made of: a number that became 0 is grey.
 * @property {string} label  What a screen reader says.
 *
 * @typedef {object} Place  A cell: the first and last token and column that it stands for.
 * @property {[number, number]} tokens
 * @property {[number, number]} columns
 * @property {number} value
 */
import { levelOf, rampOf } from './colours.js';
import { divergingRamp, signedLevel } from './diverging.js';
import { make, mark } from './dom.js';

/** Most pixels of the page on a side. */
const SIDE = 156;
/** A picture is as large as this many rows; with fewer, it is lower. */
const ROWS = 18;
/** A column is at most this wide. */
const COLUMN = 5;

/**
 * @param {((place: Place | null) => void) | null} look Called with the cell under the pointer or reached by keys; null for a picture that
 *   is only looked at.
 * @param {(token: number) => void} choose Called with the first token of a row that was clicked, or entered by keys.
 * @param {number} [largest] Most pixels on a side.
 */
export function smallPicture(look, choose, largest = SIDE) {
  const canvas = make('canvas', '', look === null ? { role: 'img' } : { role: 'application', tabindex: '0' });
  const line = make('span', 'mg-flow-row', { 'aria-hidden': 'true' });
  const cell = make('span', 'mg-flow-cell', { 'aria-hidden': 'true' });
  const element = make('span', 'mg-flow-picture', {}, [canvas, line, cell]);
  cell.hidden = true;
  /** @type {Drawing | null} */
  let drawn = null;
  let pointed = 0;
  /** Where the keys are. */
  let [row, column] = [0, 0];

  /** @param {number} atRow @param {number} atColumn @returns {Place | null} */
  function placeOf(atRow, atColumn) {
    if (drawn === null || isFuture(drawn, atRow, atColumn)) {
      return null;
    }
    const { rows, columns, values } = drawn.numbers;
    const value = values[atRow * columns + atColumn];
    return { tokens: span(atRow, rows, drawn.tokens), columns: span(atColumn, columns, drawn.across), value };
  }

  /** @param {MouseEvent} event @returns {[number, number]} */
  function under({ clientX, clientY }) {
    const box = canvas.getBoundingClientRect();
    const { rows, columns } = drawn?.numbers ?? { rows: 1, columns: 1 };
    return [within(Math.floor(((clientY - box.top) / box.height) * rows), rows), within(Math.floor(((clientX - box.left) / box.width) * columns), columns)];
  }

  /** @param {number} toRow @param {number} toColumn */
  function move(toRow, toColumn) {
    if (drawn !== null) {
      const { rows, columns } = drawn.numbers;
      row = within(toRow, rows);
      column = within(toColumn, drawn.kind === 'weights' ? row + 1 : columns);
      place(cell, row / rows, 1 / rows);
      cell.style.setProperty('left', `${(column / columns) * 100}%`);
      cell.style.setProperty('width', `${100 / columns}%`);
      cell.hidden = false;
      look?.(placeOf(row, column));
    }
  }

  /** @param {KeyboardEvent} event */
  function press(event) {
    const moves = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], Home: [row, 0], End: [row, Number.MAX_SAFE_INTEGER] };
    const to = /** @type {Record<string, number[]>} */ (moves)[event.key];
    if (event.key === 'Enter') {
      choose(placeOf(row, column)?.tokens[0] ?? 0);
    } else if (to !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      move(to[0], to[1]);
    }
  }

  if (look !== null) {
    canvas.addEventListener('pointermove', (event) => look(placeOf(...under(event))));
    canvas.addEventListener('pointerleave', () => look(cell.hidden ? null : placeOf(row, column)));
    canvas.addEventListener('click', (event) => {
      const [atRow, atColumn] = under(event);
      const there = placeOf(atRow, atColumn);
      if (there !== null) {
        move(atRow, atColumn);
        choose(there.tokens[0]);
      }
    });
    canvas.addEventListener('keydown', press);
    canvas.addEventListener('focus', () => move(pointed, column));
    canvas.addEventListener('blur', () => {
      cell.hidden = true;
      look(null);
    });
  }

  return {
    element,
    /** @param {Drawing} drawing */
    show(drawing) {
      drawn = drawing;
      mark(canvas, 'aria-label', drawing.label);
      paint(canvas, drawing);
      const { rows, columns } = drawing.numbers;
      const high = rows * Math.min(largest / ROWS, largest / rows);
      const wide = drawing.tokens === drawing.across ? high : Math.min(largest, Math.max(40, columns * COLUMN));
      canvas.style.width = `${wide}px`;
      canvas.style.aspectRatio = `${wide} / ${high}`;
    },
    /** @param {number | null} token The row whose token is chosen. */
    point(token) {
      line.hidden = drawn === null || token === null;
      if (drawn !== null && token !== null) {
        const { rows } = drawn.numbers;
        pointed = Math.floor(token / Math.ceil(drawn.tokens / rows));
        place(line, pointed / rows, 1 / rows);
      }
    },
  };
}

/** @param {number} index @param {number} length */
const within = (index, length) => Math.min(length - 1, Math.max(0, index));

/** @param {HTMLElement} frame @param {number} from @param {number} high Shares of the picture's height. */
function place(frame, from, high) {
  frame.style.setProperty('top', `${from * 100}%`);
  frame.style.setProperty('height', `${high * 100}%`);
}

/**
 * The numbers that a cell stands for, on one side.
 *
 * @param {number} cell
 * @param {number} cells
 * @param {number} length
 * @returns {[number, number]}
 */
function span(cell, cells, length) {
  const size = Math.ceil(length / cells);
  return [cell * size, Math.min(length, (cell + 1) * size) - 1];
}

/** @param {Drawing} drawing @param {number} row @param {number} column */
function isFuture({ kind }, row, column) {
  return kind === 'weights' && column > row;
}

/** @param {HTMLCanvasElement} canvas @param {Drawing} drawing */
function paint(canvas, drawing) {
  const { kind, theme, before, numbers: { rows, columns, most, values } } = drawing;
  const { pixels: colours, masked } = kind === 'weights' ? rampOf(theme) : divergingRamp(theme);
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  values.forEach((value, cell) => {
    if (!isFuture(drawing, Math.floor(cell / columns), cell % columns)) {
      const gone = value === 0 && (before?.values[cell] ?? 0) !== 0;
      pixels[cell] = gone ? masked : colours[kind === 'weights' ? levelOf(value) : signedLevel(value, most)];
    }
  });
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext('2d')?.putImageData(image, 0, 0);
}
