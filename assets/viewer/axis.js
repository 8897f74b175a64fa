/** Where the labels of an axis stand: on tokens, at round true positions, never more than fit. */
import { escapeForPlotly, shortGlyph } from './glyphs.js';

/** More labels than these dominate the time that a redraw takes. */
export const MOST_LABELS = 16;

/** 1, 2, 5, 10, 20, 50 … @returns {Generator<number, never>} */
function* roundSteps() {
  for (let power = 1; ; power *= 10) {
    yield* [power, 2 * power, 5 * power];
  }
}

/**
 * The positions that get a label.
 *
 * @param {number} from First visible position.
 * @param {number} to Last visible position.
 * @param {number} limit Most labels.
 * @param {number} [affordable] Most labels, however many fit.
 * @returns {number[]}
 */
export function labelled(from, to, limit, affordable = MOST_LABELS) {
  const most = Math.max(2, Math.min(limit, affordable));
  for (const step of roundSteps()) {
    const first = Math.ceil(from / step) * step;
    const count = Math.floor((to - first) / step) + 1;
    if (count <= most) {
      return Array.from({ length: Math.max(0, count) }, (_, index) => first + index * step);
    }
  }
  return [];
}

/**
 * A label beside a row: the true position and the token.
 *
 * @param {string} token
 * @param {number} position
 * @returns {string}
 */
export function rowLabel(token, position) {
  return `${small(position)} ${escapeForPlotly(shortGlyph(token, 8))}`;
}

/**
 * A label over a column: the token, and its true position below it.
 *
 * @param {string} token
 * @param {number} position
 * @param {number} room Characters that fit.
 * @returns {string}
 */
export function columnLabel(token, position, room) {
  return `${escapeForPlotly(shortGlyph(token, room))}<br>${small(position)}`;
}

/** @param {number} position @returns {string} */
function small(position) {
  return `<span style="font-size:0.8em">${position}</span>`;
}
