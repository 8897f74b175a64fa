/**
 * The chosen head, or all heads, as one drawing that can stand alone: title, axes with tokens, scale, and what it shows.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').Theme} Theme
 * @typedef {import('./decode.js').Analysis} Analysis
 *
 * @typedef {object} Inks
 * @property {string} ground
 * @property {string} text
 * @property {string} soft
 * @property {string} accent
 * @property {string} hatch
 * @property {string} masked
 *
 * @typedef {object} Scene  What every part of a drawing needs.
 * @property {Readonly<State>} state
 * @property {Analysis} analysis
 * @property {Translate} words
 * @property {string} model
 * @property {Inks} inks
 * @property {string[]} colours  By level.
 */
import { rampOf } from './colours.js';
import { named } from './glyphs.js';
import { axisNames, cells, columnLabels, END, frame, labelWidth, rowLabels, rowLabelWidth, turned } from './pictureparts.js';
import { colouringOf, colouringSentence, coloursOfAll, levelIn, levelsOf, written } from './scale.js';
import { strongest } from './scores.js';
import { chosenToken } from './state.js';
import { draw, write } from './svg.js';

/** @type {Readonly<Record<Theme, Inks>>} As in the style sheet. */
const INKS = {
  light: { ground: '#ffffff', text: '#141b29', soft: '#55617a', accent: '#c2410c', hatch: '#d9dfe9', masked: '#8a94a8' },
  dark: { ground: '#121926', text: '#e8edf6', soft: '#a3b0c6', accent: '#ffa45c', hatch: '#273146', masked: '#7d8ba5' },
};

/** Pixels on one side of a large map and of a small one, about; the largest that a cell gets. */
const LARGE = 768;
const SMALL = 132;
const LARGEST_CELL = 30;
/** Pixels that a label takes along its axis at least: beside rows, over columns, and where labels are few. */
const ROW = 13;
const COLUMN = 10;
const SPARSE = 24;
/** Most cells on one side of a small map, and in all of them. */
const MOST_SIDE = 64;
const MOST_CELLS = 260_000;
/** Pixels between small maps. */
const BESIDE = 14;
const BELOW = 34;
const LABELS = 40;

/**
 * @param {Readonly<State>} state
 * @param {Translate} words
 * @param {string} model The model's name.
 * @returns {Scene | null} null while there is nothing to draw.
 */
export function sceneOf(state, words, model) {
  const { analysis, theme } = state;
  // Files hold weights, whatever the page draws: the scale and its caption must be those of weights as well.
  const weights = { ...state, view: /** @type {const} */ ('raw') };
  return analysis === null ? null : { state: weights, analysis, words, model, inks: INKS[theme], colours: rampOf(theme).css };
}

/**
 * Draw the chosen head.
 *
 * @param {Scene} scene
 * @returns {SVGElement | null} null while the head is not there.
 */
export function drawHead(scene) {
  const { state, analysis, words } = scene;
  const { layer, head } = state;
  const colouring = colouringOf(state);
  const pattern = analysis.head(layer, head);
  if (pattern === null) {
    return null;
  }
  const unit = Math.max(1, Math.min(LARGEST_CELL, Math.floor(LARGE / analysis.length)));
  const rows = Array.from({ length: analysis.length }, (_, query) =>
    Array.from(pattern.row(query), (weight, key) => levelIn(colouring, weight, key === 0)),
  );
  const over = 32 + (turned(analysis, unit, COLUMN) ? labelWidth(analysis) : 10);
  const map = [
    ...cells(scene, rows, unit),
    ...rowLabels(scene, unit, ROW),
    ...columnLabels(scene, unit, COLUMN),
    ...axisNames(scene),
    ...chosen(scene, unit),
  ];
  const content = { left: rowLabelWidth(scene), top: over, width: unit * analysis.length, height: unit * analysis.length };
  const title = words('detail', { layer, head, name: `L${layer}H${head}` });
  const scale = { ...colouring, caption: colouringSentence(words, state) };
  return frame(scene, title, content, map, scale, remarkOnChosen(scene));
}

/**
 * Draw all heads, a row for each layer; long texts in blocks of tokens, as in the thumbnails of the page.
 *
 * @param {Scene} scene
 * @returns {SVGElement}
 */
export function drawGrid(scene) {
  const { state, analysis, words, inks } = scene;
  const { layers, heads, length } = analysis;
  const most = Math.floor(Math.min(MOST_SIDE, Math.sqrt((2 * MOST_CELLS) / (layers * heads))));
  const { side } = analysis.thumbnail(0, 0, most);
  const unit = Math.max(1, Math.floor(SMALL / side));
  const size = unit * side;
  // Pixels for each token: blocks may cover less at the end.
  const token = unit / Math.ceil(length / side);
  const content = [];
  for (let layer = 0; layer < layers; layer += 1) {
    for (let head = 0; head < heads; head += 1) {
      const place = `translate(${head * (size + BESIDE)} ${layer * (size + BELOW)})`;
      const labels = [...(head === 0 ? rowLabels(scene, token, SPARSE) : [])];
      content.push(draw('g', { transform: place }, [...small(scene, layer, head, most, unit), ...labels]));
    }
  }
  for (let head = 0; head < heads; head += 1) {
    const place = `translate(${head * (size + BESIDE)} -18)`;
    content.push(draw('g', { transform: place }, columnLabels(scene, token, SPARSE)));
  }
  content.push(draw('g', { transform: 'translate(0 -18)', fill: inks.soft }, axisNames(scene)));
  const box = {
    left: rowLabelWidth(scene),
    top: LABELS + 18 + (turned(analysis, token, SPARSE) ? labelWidth(analysis) : 0),
    width: heads * (size + BESIDE) - BESIDE,
    height: layers * (size + BELOW) - BELOW,
  };
  const remarks = [side === length ? '' : words('overview_pooled', { length, side }), coloursOfAll(words, state)];
  // Where each head has an end of its own, no number holds for all.
  const top = state.range === 'fixed' ? 1 : null;
  const caption = top === null ? '' : words(`scale_${state.scale}`, { top });
  const scale = { scale: state.scale, top, maskFirst: state.maskFirst, caption };
  return frame(scene, `${words('overview')} · ${layers} × ${heads}`, box, content, scale, remarks.filter((each) => each !== ''));
}

/**
 * One of all heads: its name, what it mostly does, its cells.
 *
 * @param {Scene} scene
 * @param {number} layer
 * @param {number} head
 * @param {number} most Most cells on one side.
 * @param {number} unit Pixels of a cell.
 * @returns {SVGElement[]}
 */
function small(scene, layer, head, most, unit) {
  const { state, analysis, words, inks } = scene;
  const colouring = colouringOf(state, layer, head);
  const { code, side } = analysis.thumbnail(layer, head, most, levelsOf(colouring));
  const rows = Array.from({ length: side }, (_, query) => {
    const first = (query * (query + 1)) / 2;
    return Array.from(code.subarray(first, first + query + 1), (level, key) => (state.maskFirst && key === 0 ? null : level));
  });
  const best = strongest(analysis, layer, head);
  const does = best === null ? '' : `${words(`badge_${best.name}`)} ${best.value.toFixed(2)}`;
  const badge = state.range === 'fixed' ? does : `0–${written(colouring.top)}`;
  return [
    write(`L${layer}H${head}`, 0, -5, { 'font-size': 12, 'font-weight': 600 }),
    write(badge, side * unit, -5, { ...END, 'font-size': 11, fill: inks.soft }),
    ...cells(scene, rows, unit),
  ];
}

/**
 * The frame around the token that was chosen; none where nobody chose.
 *
 * @param {Scene} scene
 * @param {number} unit
 * @returns {SVGElement[]}
 */
function chosen({ state, analysis, inks }, unit) {
  const token = chosenToken(state);
  if (state.token === null || token === null) {
    return [];
  }
  const index = token - analysis.start;
  const line = { fill: 'none', stroke: inks.accent, 'stroke-width': unit < 6 ? 1 : 2 };
  const box =
    state.direction === 'to'
      ? { x: 0, y: index * unit, width: (index + 1) * unit, height: unit }
      : { x: index * unit, y: index * unit, width: unit, height: (analysis.length - index) * unit };
  return [draw('rect', { ...box, ...line })];
}

/** @param {Scene} scene @returns {string[]} */
function remarkOnChosen({ state, analysis, words }) {
  const token = chosenToken(state);
  if (state.token === null || token === null) {
    return [];
  }
  return [words(`picture_framed_${state.direction}`, { token: named(analysis.token(token), token) })];
}

