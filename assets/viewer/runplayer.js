/**
 * The way through the snapshots of a run: a slider, buttons for one step, and a replay in which each snapshot is shown for a
 * while before the next is asked for.
 *
 * @typedef {import('./types.js').Translate} Translate
 */
import { make } from './dom.js';
import { playerBar } from './playerbar.js';

/** Least time between two snapshots; longer for people who want less motion. */
const PACE_MS = 700;
const CALM_PACE_MS = 1600;

/**
 * @param {number[]} steps Ascending, at least one.
 * @param {number} step
 * @returns {number} The nearest of the steps, by their ratio.
 */
export function nearest(steps, step) {
  /** @param {number} each */
  const distance = (each) => Math.abs(Math.log((each + 1) / (Math.max(step, 0) + 1)));
  return steps.reduce((found, each) => (distance(each) < distance(found) ? each : found));
}

/** @param {(step: number) => void} look */
export function playerView(look) {
  const calm = matchMedia('(prefers-reduced-motion: reduce)');
  /** @type {number[]} */
  let all = [];
  let index = 0;
  let playing = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Translate} */
  let words = (key) => key;

  /** @param {number} place */
  const go = (place) => look(all[Math.min(Math.max(place, 0), all.length - 1)]);
  /** @param {number} place */
  const still = (place) => {
    stop();
    go(place);
  };
  const acts = {
    first: () => still(0),
    back: () => still(index - 1),
    play: () => (playing ? stop() : play()),
    forward: () => still(index + 1),
    last: () => still(all.length - 1),
  };
  const bar = playerBar(acts, still);
  const element = make('div', '', {}, bar.elements);

  function play() {
    playing = true;
    label();
    go(index === all.length - 1 ? 0 : index + 1);
  }

  function stop() {
    playing = false;
    clearTimeout(timer);
    label();
  }

  function label() {
    bar.label((key) => words(`training_${key}`), playing);
  }

  return {
    element,
    stop,
    /** @param {number[]} steps */
    steps(steps) {
      all = steps;
      bar.reach(0, Math.max(0, steps.length - 1));
    },
    /** @param {number} step One of the steps. */
    show(step) {
      index = all.indexOf(step);
      const [atFirst, atLast] = [index === 0, index === all.length - 1];
      bar.show(index, words('training_at', { step }), { first: atFirst, back: atFirst, forward: atLast, last: atLast });
    },
    /** The snapshot is on the page. */
    arrived() {
      clearTimeout(timer);
      if (playing && index === all.length - 1) {
        stop();
      } else if (playing) {
        timer = setTimeout(() => go(index + 1), calm.matches ? CALM_PACE_MS : PACE_MS);
      }
    },
    /** @param {string} sentence */
    say: bar.say,
    /** @param {Translate} translate */
    name(translate) {
      words = translate;
      label();
    },
  };
}
