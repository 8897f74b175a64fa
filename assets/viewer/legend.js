/**
 * What the colours of all pictures mean, and the controls that change it: the scale, where it ends, the first token.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').ScaleName} ScaleName
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./state.js').Store} Store
 */
import { chooser } from './chooser.js';
import { LEAST, placeOf, weightAt } from './colours.js';
import { make, mark, say } from './dom.js';
import { colouringSentence, pictureColouring, pictureRamp, SCALES, written } from './scale.js';
import { reviewed, viewedOf } from './views.js';

/** @type {Readonly<Record<ScaleName, number[]>>} Weights that may be named between the ends of a scale. */
const NAMED = {
  sqrt: [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5],
  linear: [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75],
  log: [0.003, 0.01, 0.03, 0.1, 0.3],
};
/** Least distance of two numbers under the scale, as a share of its length; and beside an end with a sign, which is longer. */
const APART = 0.09;
const APART_FROM_SIGN = 0.26;

/**
 * The weights that are named under a scale: its ends, and between them as many as fit.
 *
 * @param {ScaleName} scale
 * @param {number} top
 * @returns {{weight: number, place: number}[]}
 */
export function ticksOf(scale, top) {
  const named = [{ weight: scale === 'log' ? LEAST : 0, place: 0 }];
  const afterFirst = scale === 'log' ? APART_FROM_SIGN : APART;
  const beforeLast = top < 1 ? APART_FROM_SIGN : APART;
  for (const weight of NAMED[scale]) {
    const place = placeOf(weight, scale, top);
    const apart = named.length === 1 ? afterFirst : APART;
    if (place - named[named.length - 1].place >= apart && 1 - place >= beforeLast) {
      named.push({ weight, place });
    }
  }
  return [...named, { weight: top, place: 1 }];
}

/**
 * @param {Store} store
 * @param {() => Translate} words
 * @returns {View}
 */
export function legendView(store, words) {
  const bar = make('div', 'mg-scale-bar');
  const ticks = make('div', 'mg-scale-ticks');
  const caption = make('span', 'mg-scale-caption');
  const future = make('span', 'mg-key mg-key-future');
  const masked = make('span', 'mg-key mg-key-masked');
  const controls = colourControls(store, words);
  const scale = make('div', 'mg-scale', {}, [bar, ticks]);
  const text = make('p', 'mg-legend', {}, [caption, future, masked]);

  return {
    element: make('div', 'mg-scale-legend', {}, [scale, text, controls.element]),
    update(state, changed) {
      const { scale: name, top, low } = pictureColouring(state);
      const isView = viewedOf(state) !== null;
      if (changed.has('theme') || reviewed(changed)) {
        bar.style.background = pictureRamp(state).gradient;
      }
      const ends = isView ? endsOf(name, top, low) : null;
      const numbers = ends ?? ticksOf(name, top).map(({ weight, place }) => {
        const sign = weight === top && top < 1 ? '≥' : name === 'log' && place === 0 ? '≤' : '';
        return { text: `${sign}${written(weight)}`, place };
      });
      const key = JSON.stringify(numbers);
      if (ticks.dataset.numbers !== key) {
        ticks.dataset.numbers = key;
        ticks.replaceChildren(...numbers.map(tick));
      }
      say(caption, colouringSentence(words(), state));
      say(future, words()('scale_future'));
      say(masked, words()('scale_masked'));
      masked.hidden = !state.maskFirst;
      controls.update(state, changed);
    },
  };
}

/**
 * The numbers under the scale of another view: its ends, its middle, and what lies halfway on each side of 0.
 *
 * @param {ScaleName} scale
 * @param {number} top
 * @param {number} low Below 0 where the middle is 0.
 */
function endsOf(scale, top, low) {
  const half = weightAt(0.5, scale, top);
  const values = low < 0 ? [low, -half, 0, half, top] : [scale === 'log' ? LEAST : 0, half, top];
  return values.map((value, index) => ({ text: String(Number(value.toPrecision(2))).replace('-', '−'), place: index / (values.length - 1) }));
}

/** @param {{text: string, place: number}} number @returns {HTMLElement} */
function tick({ text, place }) {
  const element = make('span', 'mg-scale-tick', {}, [text]);
  element.style.setProperty('--at', String(place));
  return element;
}

/**
 * @param {Store} store
 * @param {() => Translate} words
 * @returns {View}
 */
function colourControls(store, words) {
  const scales = chooser(SCALES, (scale) => store.set({ scale }));
  scales.element.classList.add('mg-scales');
  const range = checkbox(() => store.set({ range: store.state.range === 'head' ? 'fixed' : 'head' }));
  const mask = checkbox(() => store.set({ maskFirst: !store.state.maskFirst }));

  const element = make('div', 'mg-colour-controls', { role: 'group' }, [scales.element, range.element, mask.element]);

  return {
    element,
    update(state, changed) {
      if (changed.has('language')) {
        const translate = words();
        scales.name(translate('scale_choice'), (scale) => translate(`scale_name_${scale}`));
        say(range.text, translate('range_head'));
        say(mask.text, translate('mask_first'));
        mark(range.element, 'title', translate('about_range'));
        mark(mask.element, 'title', translate('about_mask'));
        mark(element, 'aria-label', translate('colours_group'));
      }
      scales.show(state.scale);
      range.input.checked = state.range === 'head';
      mask.input.checked = state.maskFirst;
    },
  };
}

/** @param {() => void} toggle */
function checkbox(toggle) {
  const input = make('input', '', { type: 'checkbox' });
  const text = make('span');
  input.addEventListener('change', toggle);
  return { input, text, element: make('label', 'mg-check', {}, [input, text]) };
}
