/**
 * Colours of what can be positive and negative: orange below 0, blue above, nothing in the middle. Lightness tells how far from 0, hue
 * on which side, and the two hues stay apart for every kind of colour vision.
 *
 * @typedef {import('./types.js').Theme} Theme
 * @typedef {import('./types.js').ScaleName} ScaleName
 * @typedef {import('./colours.js').Ramp} Ramp
 */
import { LEVELS, makeRamp, MASKED, placeOf, weightAt } from './colours.js';

/** @type {Readonly<Record<Theme, string[]>>} */
const ANCHORS = {
  light: ['#6f3205', '#c4661a', '#f0b26b', '#f4f6f9', '#93b7df', '#3d74b8', '#0b1d45'],
  dark: ['#ffe3c2', '#f0a04b', '#8f4f17', '#161e2d', '#2a5590', '#63a8e6', '#e3f2ff'],
};

/** Colours of a scale that Plotly is given. */
const STOPS = 32;

/** @type {Partial<Record<Theme, Ramp>>} */
const made = {};

/** @param {Theme} theme @returns {Ramp} Level 0 is −1, the middle 0, the last 1. */
export function divergingRamp(theme) {
  return (made[theme] ??= makeRamp(ANCHORS[theme], MASKED[theme]));
}

/**
 * The scale from −`top` to `top` as Plotly takes it.
 *
 * @param {Theme} theme
 * @param {ScaleName} [scale] How far from the middle a distance from 0 lies.
 * @param {number} [top]
 * @returns {[number, string][]}
 */
export function divergingScale(theme, scale = 'linear', top = 1) {
  const { css } = divergingRamp(theme);
  return Array.from({ length: STOPS + 1 }, (_, stop) => {
    const place = (2 * stop) / STOPS - 1;
    const share = (Math.sign(place) * weightAt(Math.abs(place), scale, top)) / top;
    return [(share + 1) / 2, css[Math.round((stop / STOPS) * (css.length - 1))]];
  });
}

/**
 * The level of a value on such a scale: 0 to 255, the middle for 0.
 *
 * @param {number} value
 * @param {ScaleName} scale
 * @param {number} top
 * @returns {number}
 */
export function divergingLevel(value, scale, top) {
  const place = (1 + Math.sign(value) * placeOf(Math.abs(value), scale, top)) / 2;
  return Math.min(LEVELS - 1, Math.floor(LEVELS * place));
}

/**
 * The level of a value: 0 to 255, the middle for 0.
 *
 * @param {number} value
 * @param {number} most What the ends stand for, above 0.
 * @returns {number}
 */
export function signedLevel(value, most) {
  const place = Math.min(1, Math.max(-1, value / most));
  return Math.round(((place + 1) / 2) * (LEVELS - 1));
}

/**
 * The end of a scale for some values: the largest distance from 0, or 1 where all are 0.
 *
 * @param {(number | null)[]} values
 * @returns {number}
 */
export function largest(values) {
  const most = values.reduce((/** @type {number} */ so, value) => Math.max(so, Math.abs(value ?? 0)), 0);
  return most > 0 ? most : 1;
}

/**
 * A change with its sign: `+0.123`, `−0.004`; what rounds to nothing has none.
 *
 * @param {number | null} value
 * @returns {string}
 */
export function signed(value) {
  if (value === null) {
    return '–';
  }
  const text = Math.abs(value).toFixed(3);
  return Number(text) === 0 ? '0.000' : `${value < 0 ? '−' : '+'}${text}`;
}
