/**
 * The one colour scale of every picture: attention weights, the same in thumbnails, heatmap and strip.
 *
 * One hue, lightness changing in one direction, so that it reads without colour vision and in grey. Unless another scale is
 * chosen, a weight's colour lies at the square root of the weight: long rows hold many small weights, which a linear scale
 * would make invisible. What the model may not see has no colour at all.
 *
 * @typedef {import('./types.js').Theme} Theme
 * @typedef {import('./types.js').ScaleName} ScaleName
 *
 * @typedef {object} Ramp
 * @property {string[]} css  256 colours by level.
 * @property {string[]} ink  For each level the text colour that can be read on it.
 * @property {string[]} faint  The same for signs of invisible characters: as quiet as can still be read.
 * @property {Uint32Array} pixels  The same 256 colours as canvas pixels, opaque.
 * @property {number} masked  The canvas pixel that marks a masked token.
 * @property {string} gradient  The scale as a CSS gradient.
 */

/** @type {Readonly<Record<Theme, string[]>>} */
const ANCHORS = {
  light: ['#e4ebf5', '#b3cce8', '#6ea3d8', '#3377ba', '#1b4a86', '#0b1d45'],
  dark: ['#1b2740', '#1f4573', '#2b72b3', '#56a8e2', '#a9daf7', '#f7fcff'],
};
export const LEVELS = 256;
/** Marks what is masked: grey, so that it is no colour of the scale. */
export const MASKED = { light: '#8a94a8', dark: '#7d8ba5' };
const STOPS = 24;
/** Where a logarithmic scale begins: weights travel in thousandths, and what is smaller reads as 0. */
export const LEAST = 0.001;
/** WCAG 2.2 asks for this contrast of text. */
const READABLE = 4.5;
/** Nearly black: on the middle of a scale anything lighter, or any white that is not white, falls short of it. */
const DARK_INK = '#020408';
const LIGHT_INK = '#ffffff';

/** @param {string} hex @returns {[number, number, number]} */
function channels(hex) {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/**
 * Relative luminance as WCAG 2.2 defines it, 0 to 1.
 *
 * @param {number[]} rgb 0 to 255.
 * @returns {number}
 */
function luminance(rgb) {
  const [red, green, blue] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * WCAG's contrast between two colours, 1 to 21.
 *
 * @param {string} first
 * @param {string} second
 * @returns {number}
 */
export function contrast(first, second) {
  const [low, high] = [luminance(channels(first)), luminance(channels(second))].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** @param {string[]} anchors @param {number} position 0 to 1 @returns {string} */
function blend(anchors, position) {
  const place = position * (anchors.length - 1);
  const left = Math.min(Math.floor(place), anchors.length - 2);
  const from = channels(anchors[left]);
  const to = channels(anchors[left + 1]);
  const mixed = from.map((value, index) => Math.round(value + (to[index] - value) * (place - left)));
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/**
 * An ink mixed with the colour it stands on, as far as it can still be read.
 *
 * @param {string} ink
 * @param {string} ground
 * @returns {string}
 */
function fade(ink, ground) {
  let faded = ink;
  for (let share = 0.05; share <= 0.5; share += 0.05) {
    const next = blend([ink, ground], share);
    if (contrast(next, ground) < READABLE) {
      break;
    }
    faded = next;
  }
  return faded;
}

/**
 * A scale through some colours.
 *
 * @param {string[]} anchors From the lowest level to the highest, evenly spaced.
 * @param {string} masked The colour of what is masked.
 * @returns {Ramp}
 */
export function makeRamp(anchors, masked) {
  const css = Array.from({ length: LEVELS }, (_, level) => blend(anchors, level / (LEVELS - 1)));
  const ink = css.map((colour) => (contrast(colour, DARK_INK) > contrast(colour, LIGHT_INK) ? DARK_INK : LIGHT_INK));
  const bytes = new Uint8ClampedArray([...css, masked].flatMap((colour) => [...channels(colour), 255]));
  const pixels = new Uint32Array(bytes.buffer);
  return {
    css,
    ink,
    faint: css.map((colour, level) => fade(ink[level], colour)),
    pixels: pixels.subarray(0, LEVELS),
    masked: pixels[LEVELS],
    gradient: `linear-gradient(to right, ${anchors.join(', ')})`,
  };
}

/** @type {Partial<Record<Theme, Ramp>>} */
const made = {};

/** @param {Theme} theme @returns {Ramp} */
export function rampOf(theme) {
  return (made[theme] ??= makeRamp(ANCHORS[theme], MASKED[theme]));
}

/**
 * Where a weight lies on a scale: 0 at its beginning, 1 from `top` on.
 *
 * @param {number} weight 0 to 1.
 * @param {ScaleName} scale
 * @param {number} top The weight at the scale's end, above `LEAST`.
 * @returns {number}
 */
export function placeOf(weight, scale, top) {
  if (weight >= top) {
    return 1;
  }
  if (scale === 'log') {
    return weight <= LEAST ? 0 : Math.log(weight / LEAST) / Math.log(top / LEAST);
  }
  return scale === 'sqrt' ? Math.sqrt(weight / top) : weight / top;
}

/**
 * The weight at a place of a scale: the inverse of `placeOf`.
 *
 * @param {number} place 0 to 1.
 * @param {ScaleName} scale
 * @param {number} top
 * @returns {number}
 */
export function weightAt(place, scale, top) {
  if (scale === 'log') {
    return LEAST * (top / LEAST) ** place;
  }
  return scale === 'sqrt' ? place * place * top : place * top;
}

/**
 * The level of a weight on a scale: 0 to 255.
 *
 * @param {number} weight 0 to 1.
 * @param {ScaleName} [scale]
 * @param {number} [top]
 * @returns {number}
 */
export function levelOf(weight, scale = 'sqrt', top = 1) {
  return Math.min(LEVELS - 1, Math.floor(LEVELS * placeOf(weight, scale, top)));
}

/**
 * The same scale as Plotly takes it, over weights from 0 to `top`.
 *
 * @param {Theme} theme
 * @param {ScaleName} [scale]
 * @param {number} [top]
 * @returns {[number, string][]}
 */
export function plotlyScale(theme, scale = 'sqrt', top = 1) {
  const anchors = ANCHORS[theme];
  const stops = Array.from({ length: STOPS + 1 }, (_, stop) => {
    const place = stop / STOPS;
    return /** @type {[number, string]} */ ([stop === STOPS ? 1 : weightAt(place, scale, top) / top, blend(anchors, place)]);
  });
  return scale === 'log' ? [[0, anchors[0]], ...stops] : stops;
}
