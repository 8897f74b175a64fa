/**
 * What Plotly draws of a head, as plain values: the trace, the axes with their labels, the frame around the chosen token.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./decode.js').Head} Head
 *
 * @typedef {{width: number, height: number, left: number}} Size  Pixels; `left` is the room for row labels.
 *
 * @typedef {object} Frame  The visible part of the map, in true positions.
 * @property {[number, number]} x
 * @property {[number, number]} y  From the top down.
 */
import { columnLabel, labelled, rowLabel } from './axis.js';
import { plotlyScale } from './colours.js';
import { divergingScale } from './diverging.js';
import { pictureColouring } from './scale.js';
import { chosenToken } from './state.js';

export const CONFIG = { displayModeBar: false, doubleClick: false, showTips: false, plotlyServerURL: '' };
export const MARGIN = { top: 42, right: 14, bottom: 2 };
/** Pixels beside a row label, and those of one character in a label. */
const BESIDE_LABEL = 30;
const CHARACTER = 8;
/** Most strokes over a masked column. */
const MOST_STROKES = 96;
/** Least pixels between two labels. */
const LABEL_WIDTH = 30;
const LABEL_HEIGHT = 22;

/** @param {Analysis} analysis @returns {Frame} */
export function whole({ start, edge }) {
  return { x: [start - 0.5, edge - 0.5], y: [start - 0.5, edge - 0.5] };
}

/** @param {Frame} frame @param {Analysis} analysis @returns {boolean} */
export function inside({ x, y }, { start, edge }) {
  return Math.min(x[0], y[0]) >= start - 0.5 && Math.max(x[1], y[1]) <= edge - 0.5;
}

/**
 * The frame that Plotly reports after a drag, or null where the change is about something else.
 *
 * @param {Record<string, unknown>} change
 * @param {Frame} before
 * @returns {Frame | null}
 */
export function frameOf(change, before) {
  /** @param {'xaxis' | 'yaxis'} axis @returns {[number, number] | null} */
  const range = (axis) => {
    const ends = [change[`${axis}.range[0]`], change[`${axis}.range[1]`]].map(Number);
    return ends.every(Number.isFinite) ? [Math.min(...ends), Math.max(...ends)] : null;
  };
  const [x, y] = [range('xaxis'), range('yaxis')];
  return x === null && y === null ? null : { x: x ?? before.x, y: y ?? before.y };
}

/**
 * Room for the row labels.
 *
 * @param {Analysis} analysis
 * @returns {number} Pixels.
 */
export function leftMargin(analysis) {
  const longest = analysis.ids.reduce((most, id) => Math.max(most, Math.min(8, Array.from(analysis.piece(id)).length)), 1);
  return BESIDE_LABEL + CHARACTER * (longest + String(analysis.edge - 1).length);
}

/**
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @param {Head} pattern
 */
export function traceOf(state, analysis, pattern) {
  return {
    type: 'heatmap',
    z: pattern.rows(),
    x0: analysis.start,
    dx: 1,
    y0: analysis.start,
    dy: 1,
    ...coloursOf(state),
    showscale: false,
    hoverinfo: 'none',
    hoverongaps: false,
  };
}

/**
 * How Plotly colours the chosen head.
 *
 * @param {Readonly<State>} state
 * @returns {{zmin: number, zmax: number, colorscale: [number, string][]}}
 */
export function coloursOf(state) {
  const { scale, low, top } = pictureColouring(state);
  const colorscale = low < 0 ? divergingScale(state.theme, scale, top) : plotlyScale(state.theme, scale, top);
  return { zmin: low, zmax: top, colorscale };
}

/**
 * What stands over the cells: a masked first column, and the frame around the chosen token.
 *
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @param {HTMLElement} element
 */
export function shapesOf(state, analysis, element) {
  const frame = markOf(state, analysis, element);
  return state.maskFirst ? [...maskOf(analysis, element), frame] : [frame];
}

/**
 * A column without colours, hatched.
 *
 * @param {Analysis} analysis
 * @param {HTMLElement} element
 */
function maskOf({ start, end }, element) {
  const [left, right, top, bottom] = [start - 0.5, start + 0.5, start - 0.5, end - 0.5];
  const height = Math.ceil((end - start) / MOST_STROKES);
  let path = '';
  for (let from = top; from < bottom; from += height) {
    path += `M${left},${Math.min(from + height, bottom)}L${right},${from}`;
  }
  const line = { color: colourOf(element, '--mg-control'), width: 1.5 };
  const ground = { type: 'rect', name: 'masked', x0: left, x1: right, y0: top, y1: bottom, line: { width: 0 } };
  return [{ ...ground, fillcolor: colourOf(element, '--mg-panel') }, { type: 'path', name: 'hatching', path, line }];
}

/**
 * The frame around the chosen token's row or column.
 *
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @param {HTMLElement} element
 */
function markOf(state, analysis, element) {
  const token = chosenToken(state) ?? analysis.start;
  const { start, end, edge } = analysis;
  const row = { x0: start - 0.5, x1: token + 0.5, y0: token - 0.5, y1: token + 0.5 };
  const column = { x0: token - 0.5, x1: token + 0.5, y0: token - 0.5, y1: end - 0.5 };
  const thin = element.clientWidth / (edge - start) < 6;
  const line = { color: colourOf(element, '--mg-accent'), width: thin ? 1 : 2 };
  return { type: 'rect', name: 'chosen', line, ...(state.direction === 'to' ? row : column) };
}

/** @param {HTMLElement} element @param {string} name @returns {string} A colour of the style sheet. */
export function colourOf(element, name) {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

/** @param {HTMLElement} element */
export function axisStyle(element) {
  return {
    tickmode: 'array',
    tickangle: 0,
    ticks: '',
    ticklabelstandoff: 4,
    // Otherwise Plotly measures all labels again for each label.
    ticklabeloverflow: 'allow',
    showgrid: false,
    zeroline: false,
    tickfont: { family: colourOf(element, '--mg-mono'), size: 12, color: colourOf(element, '--mg-soft') },
  };
}

/**
 * The visible part and the labels of both axes.
 *
 * @param {Analysis} analysis
 * @param {Size} size
 * @param {Frame} frame
 */
export function axes(analysis, { width, height, left }, { x, y }) {
  const { start, end, edge } = analysis;
  /** @param {[number, number]} range @param {number} most */
  const positions = ([from, to], most) =>
    labelled(Math.max(start, Math.ceil(from)), Math.min(edge - 1, Math.floor(to)), Math.floor(most))
      .filter((position) => position < end);
  const columns = positions(x, (width - left) / LABEL_WIDTH);
  const rows = positions(y, (height - MARGIN.top) / LABEL_HEIGHT);
  const room = Math.max(2, Math.floor((width - left) / columns.length / CHARACTER));
  const bounds = { minallowed: start - 0.5, maxallowed: edge - 0.5 };
  return {
    xaxis: {
      ...bounds,
      side: 'top',
      range: x,
      tickvals: columns,
      ticktext: columns.map((position) => columnLabel(analysis.token(position), position, room)),
    },
    yaxis: {
      ...bounds,
      range: [y[1], y[0]],
      tickvals: rows,
      ticktext: rows.map((position) => rowLabel(analysis.token(position), position)),
    },
  };
}

/**
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @param {Size} size
 * @param {Frame} frame
 * @param {HTMLElement} element
 */
export function layoutOf(state, analysis, size, frame, element) {
  const { xaxis, yaxis } = axes(analysis, size, frame);
  return {
    width: size.width,
    height: size.height,
    margin: { l: size.left, t: MARGIN.top, r: MARGIN.right, b: MARGIN.bottom, pad: 0 },
    paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)',
    hovermode: 'closest',
    // A finger scrolls the page; a mouse drags a frame to zoom.
    dragmode: matchMedia('(pointer: coarse)').matches ? false : 'zoom',
    showlegend: false,
    xaxis: { ...axisStyle(element), ...xaxis },
    yaxis: { ...axisStyle(element), ...yaxis },
    shapes: shapesOf(state, analysis, element),
  };
}
