/**
 * How the weights of a head become colours now: which scale, where it ends, and whether the first token takes part.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').ScaleName} ScaleName
 * @typedef {import('./types.js').Translate} Translate
 *
 * @typedef {object} Colouring
 * @property {ScaleName} scale
 * @property {number} top  The weight that has the last colour; larger ones have it too.
 * @property {boolean} maskFirst
 */
import { LEAST, levelOf, rampOf } from './colours.js';
import { divergingLevel, divergingRamp } from './diverging.js';
import { digits } from './glyphs.js';
import { PARTS } from './unpack.js';
import { viewedOf } from './views.js';

/** @type {readonly ScaleName[]} */
export const SCALES = ['sqrt', 'linear', 'log'];
/** The state that decides about colours. */
const DECIDING = /** @type {const} */ (['scale', 'range', 'maskFirst']);
const KEPT_TABLES = 256;

/**
 * @param {ReadonlySet<keyof State>} changed
 * @returns {boolean} Whether all pictures have other colours now.
 */
export function recoloured(changed) {
  return DECIDING.some((name) => changed.has(name));
}

/**
 * @param {Readonly<State>} state
 * @param {number} [layer]
 * @param {number} [head]
 * @returns {Colouring}
 */
export function colouringOf({ analysis, scale, range, maskFirst, ...chosen }, layer = chosen.layer, head = chosen.head) {
  const top = range === 'fixed' || analysis === null ? 1 : Math.max(analysis.reach(layer, head, maskFirst), 2 * LEAST);
  return { scale, top, maskFirst };
}

/**
 * The level of a weight, or null where it has no colour.
 *
 * @param {Colouring} colouring
 * @param {number} weight
 * @param {boolean} onFirst Whether the key is the window's first token.
 * @returns {number | null}
 */
export function levelIn({ scale, top, maskFirst }, weight, onFirst) {
  return maskFirst && onFirst ? null : levelOf(weight, scale, top);
}

/** @type {Map<string, Uint8Array>} */
const tables = new Map();

/**
 * The levels of all weights as they travel, in thousandths.
 *
 * @param {Colouring & {low?: number, units?: number}} colouring
 * @returns {Uint8Array}
 */
export function levelsOf({ scale, top, low = 0, units = 1 }) {
  const name = `${scale}:${top}:${low}:${units}`;
  let table = tables.get(name);
  if (table === undefined) {
    table = Uint8Array.from({ length: PARTS + 1 }, (_, parts) =>
      (low < 0 ? divergingLevel((2 * parts / PARTS - 1) * units, scale, top) : levelOf((parts / PARTS) * units, scale, top)));
    if (tables.size >= KEPT_TABLES) {
      tables.clear();
    }
    tables.set(name, table);
  }
  return table;
}

/**
 * How the cells of a picture become colours: as weights do, or as what is drawn instead of them.
 *
 * @typedef {Colouring & {low: number, units: number}} PictureColouring  `low` is where the scale begins, below 0 where colours
 *   tell the sign; `units` what a whole (thousand thousandths) stands for.
 *
 * @param {Readonly<State>} state
 * @param {number} [layer]
 * @param {number} [head]
 * @returns {PictureColouring}
 */
export function pictureColouring(state, layer = state.layer, head = state.head) {
  const viewed = viewedOf(state);
  if (viewed === null) {
    return { ...colouringOf(state, layer, head), low: 0, units: 1 };
  }
  const { low, top } = viewed.analysis.span;
  const { scale, range, maskFirst } = state;
  const reach = range === 'fixed' ? 1 : Math.max(viewed.analysis.reach(layer, head, maskFirst), 2 * LEAST);
  if (low < 0) {
    const end = reach * top;
    // A logarithmic scale has to end above where it begins.
    return { scale: scale === 'log' && end <= LEAST ? 'linear' : scale, top: end, low: -end, units: top, maskFirst };
  }
  return { scale, top: reach * top, low: 0, units: top, maskFirst };
}

/** @param {Readonly<State>} state @returns {import('./colours.js').Ramp} The colours of the pictures. */
export function pictureRamp(state) {
  return (viewedOf(state)?.analysis.span.low ?? 0) < 0 ? divergingRamp(state.theme) : rampOf(state.theme);
}

/**
 * What has to be said about the colours of the chosen head, as it stands under its picture.
 *
 * @param {Translate} translate
 * @param {Readonly<State>} state
 * @returns {string}
 */
export function colouringSentence(translate, state) {
  const viewed = viewedOf(state);
  if (viewed !== null) {
    const ends = pictureColouring(state);
    return translate(`view_${viewed.name}_scale`, { top: ends.top < 0.001 ? ends.top.toExponential(1) : String(Number(ends.top.toFixed(3))) });
  }
  const { scale, top } = colouringOf(state);
  const said = translate(`scale_${scale}`, { top: written(top) });
  return top === 1 ? said : `${said}. ${translate('scale_reach', { top: written(top) })}`;
}

/**
 * The same for all heads at once, or nothing where the colours are as they are at first.
 *
 * @param {Translate} translate
 * @param {Readonly<State>} state
 * @returns {string}
 */
export function coloursOfAll(translate, { scale, range, maskFirst }) {
  const parts = [
    scale === 'sqrt' ? '' : translate(`colours_${scale}`),
    range === 'fixed' ? '' : translate('colours_head'),
    maskFirst ? translate('colours_masked') : '',
  ];
  const said = parts.filter((part) => part !== '');
  return said.length === 0 ? '' : translate('colours', { changes: said.join(', ') });
}

/** @param {number} weight @returns {string} A weight without zeros at its end. */
export function written(weight) {
  return weight === 0 || weight >= LEAST ? String(Number(weight.toFixed(3))) : digits(weight);
}
