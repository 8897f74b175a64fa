/**
 * The parts of a drawing: cells, labels, the scale, and the frame with title and captions around them.
 *
 * Neighbouring cells of one colour are one stroke of a path, so that a drawing stays small, and sharp at any size.
 *
 * @typedef {import('./picture.js').Scene} Scene
 * @typedef {import('./decode.js').Analysis} Analysis
 *
 * @typedef {object} Scale  What the colours of a drawing mean.
 * @property {import('./types.js').ScaleName} scale
 * @property {number | null} top  The weight that has the last colour; null where that is another one in each head.
 * @property {boolean} maskFirst
 * @property {string} caption
 */
import { labelled } from './axis.js';
import { glyph, shortGlyph } from './glyphs.js';
import { ticksOf } from './legend.js';
import { written } from './scale.js';
import { draw, write } from './svg.js';

export const PAD = 24;
export const END = { 'text-anchor': 'end' };
const MIDDLE = { 'text-anchor': 'middle' };
const SANS = 'system-ui, "Segoe UI", "Apple SD Gothic Neo", "Noto Sans KR", "Noto Sans CJK KR", "Malgun Gothic", sans-serif';
const MONO = 'ui-monospace, Menlo, Consolas, D2Coding, "DejaVu Sans Mono", "Noto Sans Mono CJK KR", monospace';
const TOKEN = { 'font-family': MONO, 'font-size': 12 };
const SMALL = { 'font-size': 10 };
/** Pixels of a character of a token; a wide one counts twice. */
const CHARACTER = 7.3;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const LONGEST_LABEL = 12;
/** Pixels between two numbers over an axis. */
const NUMBER = 26;
const LEAST_WIDTH = 560;
const HEAD = 62;
const SCALE_WIDTH = 320;
/** Pixels from the content to the first caption, and from one line to the next. */
const FOOT = 80;
const LINE = 19;
const STOPS = 16;

/** @param {string} text @returns {number} Pixels of a token's text, about. */
function widthOf(text) {
  return Array.from(text).reduce((width, character) => width + (WIDE.test(character) ? 2 : 1) * CHARACTER, 0);
}

/**
 * A sentence in lines, broken between words.
 *
 * @param {string} text
 * @param {number} room Pixels.
 * @returns {string[]}
 */
function wrapped(text, room) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(' ').filter((part) => part !== '')) {
    const last = lines.length - 1;
    if (last >= 0 && widthOf(`${lines[last]} ${word}`) <= room) {
      lines[last] += ` ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

/** @param {Analysis} analysis @returns {number} Pixels of the longest label of a token. */
export function labelWidth(analysis) {
  return Math.ceil(Math.max(...new Set(analysis.ids.map((id) => widthOf(label(analysis.piece(id)))))));
}

/** @param {Scene} scene @returns {number} Pixels to the left of the rows. */
export function rowLabelWidth({ analysis }) {
  return Math.max(64, labelWidth(analysis) + 6 * String(analysis.end - 1).length + 18);
}

/** @param {string} token @returns {string} */
function label(token) {
  return shortGlyph(token, LONGEST_LABEL);
}

/**
 * Where labels stand along an axis.
 *
 * @param {Analysis} analysis
 * @param {number} unit Pixels of a token.
 * @param {number} least Pixels between two labels, at least.
 * @returns {number[]} True positions.
 */
function places({ start, end, length }, unit, least) {
  return labelled(start, end - 1, Math.floor((length * unit) / least), length);
}

/**
 * Whether the labels over columns have to stand upright, because side by side they do not fit.
 *
 * @param {Analysis} analysis
 * @param {number} unit
 * @param {number} least
 * @returns {boolean}
 */
export function turned(analysis, unit, least) {
  const [first, second] = places(analysis, unit, least);
  return second !== undefined && labelWidth(analysis) > (second - first) * unit;
}

/**
 * The cells of a map, with the hatched future behind them.
 *
 * @param {Scene} scene
 * @param {(number | null)[][]} rows Levels, null where a cell is masked; row after row of a lower triangle.
 * @param {number} unit Pixels of a cell.
 * @returns {SVGElement[]}
 */
export function cells({ colours }, rows, unit) {
  /** @type {Map<number | null, string[]>} */
  const strokes = new Map();
  rows.forEach((row, query) => {
    for (let key = 0; key < row.length; ) {
      let end = key + 1;
      while (end < row.length && row[end] === row[key]) {
        end += 1;
      }
      const width = (end - key) * unit;
      const stroke = `M${key * unit} ${query * unit}h${width}v${unit}h-${width}z`;
      const same = strokes.get(row[key]);
      if (same === undefined) {
        strokes.set(row[key], [stroke]);
      } else {
        same.push(stroke);
      }
      key = end;
    }
  });
  const side = rows.length * unit;
  const paths = Array.from(strokes, ([level, parts]) => 
    draw('path', { fill: level === null ? 'url(#masked)' : colours[level], d: parts.join('') }),
  );
  return [
    draw('rect', { width: side, height: side, fill: 'url(#future)' }),
    draw('g', { 'shape-rendering': 'crispEdges' }, paths),
  ];
}

/**
 * Beside rows: the token, and its true position to the left of it.
 *
 * @param {Scene} scene
 * @param {number} unit
 * @param {number} least
 * @returns {SVGElement[]}
 */
export function rowLabels({ analysis, inks }, unit, least) {
  const beside = -labelWidth(analysis) - 10;
  return places(analysis, unit, least).flatMap((position) => {
    const y = (position - analysis.start + 0.5) * unit + 4;
    return [
      write(label(analysis.token(position)), -6, y, { ...END, ...TOKEN, fill: inks.text }),
      write(String(position), beside, y, { ...END, ...SMALL, fill: inks.soft }),
    ];
  });
}

/**
 * Over columns: the token, and its true position below it where there is room.
 *
 * @param {Scene} scene
 * @param {number} unit
 * @param {number} least
 * @returns {SVGElement[]}
 */
export function columnLabels({ analysis, inks }, unit, least) {
  const upright = turned(analysis, unit, least);
  const numbered = new Set(places(analysis, unit, Math.max(least, NUMBER)));
  return places(analysis, unit, least).flatMap((position) => {
    const x = (position - analysis.start + 0.5) * unit;
    /** @type {import('./svg.js').Attributes} */
    const place = upright ? { transform: `translate(${x + 4} -18) rotate(-90)` } : { ...MIDDLE, x, y: -18 };
    const token = write(label(analysis.token(position)), 0, 0, { ...place, ...TOKEN, fill: inks.text });
    return numbered.has(position) ? [token, write(String(position), x, -5, { ...MIDDLE, ...SMALL, fill: inks.soft })] : [token];
  });
}

/** @param {Scene} scene @returns {SVGElement[]} Which axis is which, in the corner. */
export function axisNames({ words, inks }) {
  const style = { ...END, 'font-size': 12, fill: inks.soft };
  return [write(words('axis_key'), -12, -18, style), write(words('axis_query'), -12, -4, style)];
}

/**
 * Put title, model and text above the content, and the scale and what else is to be said below it.
 *
 * @param {Scene} scene
 * @param {string} title
 * @param {{left: number, top: number, width: number, height: number}} box Of the content; `left` and `top` are its labels.
 * @param {SVGElement[]} content
 * @param {Scale} shown
 * @param {string[]} remarks
 * @returns {SVGElement}
 */
export function frame(scene, title, box, content, shown, remarks) {
  const { analysis, words, model, inks, state } = scene;
  const width = Math.max(LEAST_WIDTH, PAD + box.left + box.width + PAD);
  const bottom = PAD + HEAD + box.top + box.height;
  const lines = [shown.caption, ...remarks].flatMap((text) => wrapped(text, width - 2 * PAD));
  const height = bottom + FOOT + LINE * lines.length + PAD / 2;
  const about = [model, words('strip_count', { length: analysis.length, block: analysis.checkpoint.block_size })].join(' · ');
  const parts = [
    draw('title', {}, [`${title} · ${model}`]),
    definitions(scene),
    draw('rect', { width, height, fill: inks.ground }),
    write(title, PAD, PAD + 15, { 'font-size': 18, 'font-weight': 650 }),
    write(about, PAD, PAD + 35, { 'font-size': 13, fill: inks.soft }),
    write(excerpt(analysis, width - 2 * PAD), PAD, PAD + 54, { ...TOKEN, fill: inks.soft }),
    draw('g', { transform: `translate(${PAD + box.left} ${PAD + HEAD + box.top})` }, content),
    draw('g', { transform: `translate(${PAD} ${bottom + 20})` }, scale(scene, shown)),
    ...lines.map((line, index) => write(line, PAD, bottom + FOOT + LINE * index, { 'font-size': 13, fill: inks.soft })),
  ];
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  return draw('svg', { ...size, lang: state.language, 'font-family': SANS, fill: inks.text, style: 'white-space: pre' }, parts);
}

/** @param {Scene} scene @returns {SVGElement} The hatching of the future and the colours of the scale. */
function definitions({ inks, colours }) {
  const lines = draw('path', { d: 'M-1 1l2 -2M0 6l6 -6M5 7l2 -2', stroke: inks.hatch, 'stroke-width': 1 });
  const stops = Array.from({ length: STOPS + 1 }, (_, stop) =>
    draw('stop', { offset: stop / STOPS, 'stop-color': colours[Math.round((stop / STOPS) * (colours.length - 1))] }),
  );
  return draw('defs', {}, [
    draw('pattern', { id: 'future', width: 6, height: 6, patternUnits: 'userSpaceOnUse' }, [lines]),
    draw('pattern', { id: 'masked', width: 6, height: 6, patternUnits: 'userSpaceOnUse' }, [
      draw('rect', { width: 6, height: 6, fill: inks.ground }),
      draw('rect', { width: 6, height: 2, fill: inks.masked }),
    ]),
    draw('linearGradient', { id: 'scale' }, stops),
  ]);
}

/** @param {Scene} scene @param {Scale} shown @returns {SVGElement[]} What the colours mean. */
function scale({ words, inks }, { scale: name, top, maskFirst }) {
  const ticks = top === null ? [] : ticksOf(name, top);
  const numbers = ticks.map(({ weight, place }) => {
    const sign = weight === top && top < 1 ? '≥' : name === 'log' && place === 0 ? '≤' : '';
    return write(`${sign}${written(weight)}`, place * SCALE_WIDTH, 24, { ...MIDDLE, 'font-size': 11, fill: inks.soft });
  });
  const keys = [['future', 0], ...(maskFirst ? [['masked', 24]] : [])].flatMap(([key, y]) => [
    draw('rect', { x: SCALE_WIDTH + 40, y, width: 14, height: 12, fill: `url(#${key})`, stroke: inks.hatch }),
    write(words(`scale_${key}`), SCALE_WIDTH + 62, Number(y) + 11, { 'font-size': 13, fill: inks.soft }),
  ]);
  return [
    draw('rect', { width: SCALE_WIDTH, height: 10, fill: 'url(#scale)' }),
    ...numbers,
    ...keys,
  ];
}

/** @param {Analysis} analysis @param {number} room Pixels. @returns {string} The text's beginning, as much as fits. */
function excerpt(analysis, room) {
  let [text, width] = [analysis.start === 0 ? '' : '… ', 0];
  for (const id of analysis.ids) {
    const next = glyph(analysis.piece(id));
    width += widthOf(next);
    if (width > room - 3 * CHARACTER) {
      return `${text}…`;
    }
    text += next;
  }
  return text;
}
