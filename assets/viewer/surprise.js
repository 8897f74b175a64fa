/**
 * Surprise: −log₂ of the probability that the model gave a token, given those before it in the window that is looked at; in bits.
 * It has a colour scale of its own, so that it is never taken for attention.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Theme} Theme
 * @typedef {import('./types.js').Translate} Translate
 */
import { LEVELS, makeRamp, MASKED } from './colours.js';
import { make, mark, say } from './dom.js';
import { digits, named } from './glyphs.js';
import { shownToken } from './state.js';

/** Bits at the end of the scale; what is more surprising has the same colour. */
export const MOST_BITS = 10;
const NAMED_BITS = [0, 2, 4, 6, 8, 10];

/** @type {Readonly<Record<Theme, string[]>>} */
const ANCHORS = {
  light: ['#f6efe6', '#f3cf9b', '#e9a04a', '#c86f14', '#8f4708', '#4f2403'],
  dark: ['#2b2117', '#5a3a14', '#955a12', '#d48a2b', '#f3c378', '#fff6e6'],
};

/** @type {Partial<Record<Theme, import('./colours.js').Ramp>>} */
const made = {};

/** @param {Theme} theme @returns {import('./colours.js').Ramp} */
export function surpriseRamp(theme) {
  return (made[theme] ??= makeRamp(ANCHORS[theme], MASKED[theme]));
}

/**
 * What the model gave the token at a position, or null where it saw nothing before it.
 *
 * @param {Readonly<State>} state
 * @param {number} position
 * @returns {{probability: number, rank: number} | null}
 */
export function chanceOf({ analysis, choices }, position) {
  if (analysis === null || position <= analysis.start || position > analysis.end) {
    return null;
  }
  if (position < analysis.end) {
    return analysis.taken(position - 1);
  }
  return choices === null ? null : { probability: choices.taken.before, rank: choices.taken.rank };
}

/** @param {number} probability @returns {number} In bits. */
export function bitsOf(probability) {
  return Math.max(0, -Math.log2(probability));
}

/**
 * The level of a token's surprise on the scale: 0 to 255.
 *
 * @param {Readonly<State>} state
 * @param {number} position
 * @returns {number | null}
 */
export function surpriseLevel(state, position) {
  const chance = chanceOf(state, position);
  return chance === null ? null : Math.min(LEVELS - 1, Math.floor((LEVELS * bitsOf(chance.probability)) / MOST_BITS));
}

/**
 * What the colours of surprise mean, and the number of the token that is looked at.
 *
 * @param {() => Translate} words
 * @returns {import('./types.js').View}
 */
export function surpriseLegend(words) {
  const bar = make('div', 'mg-scale-bar');
  const ticks = NAMED_BITS.map((bits) => {
    const tick = make('span', 'mg-scale-tick', {}, [bits === MOST_BITS ? `${bits}+` : String(bits)]);
    tick.style.setProperty('--at', String(bits / MOST_BITS));
    return tick;
  });
  const caption = make('span', 'mg-scale-caption');
  const value = make('strong', 'mg-bits');
  const scale = make('div', 'mg-scale', {}, [bar, make('div', 'mg-scale-ticks', {}, ticks)]);
  const element = make('div', 'mg-scale-legend mg-surprise', {}, [scale, make('p', 'mg-legend', {}, [caption, value])]);

  return {
    element,
    update(state, changed) {
      element.hidden = state.colouring !== 'surprise';
      if (changed.has('language')) {
        say(caption, words()('surprise_legend'));
      }
      if (changed.has('theme')) {
        mark(bar, 'style', `background: ${surpriseRamp(state.theme).gradient}`);
      }
      const position = shownToken(state);
      const chance = position === null ? null : chanceOf(state, position);
      if (position === null || chance === null) {
        say(value, '');
        return;
      }
      const token = named(state.analysis?.token(position) ?? '', position);
      const bits = bitsOf(chance.probability).toFixed(2);
      say(value, words()('surprise_value', { token, bits, probability: digits(chance.probability), rank: chance.rank + 1 }));
    },
  };
}
