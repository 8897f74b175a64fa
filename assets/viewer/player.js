/**
 * The replay: each step follows once the one before has been seen for a while, so nothing piles up where drawing is slow.
 *
 * @typedef {import('./state.js').Store} Store
 */
import { goTo } from './time.js';

/** Least time between two steps; longer for people who want less motion. */
const PACE_MS = 300;
const CALM_PACE_MS = 1200;

/** @param {Store} store */
export function followPlaying(store) {
  const calm = matchMedia('(prefers-reduced-motion: reduce)');
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  store.subscribe(({ playing, step, analysis }) => {
    if (!playing) {
      clearTimeout(timer);
      timer = undefined;
      return;
    }
    if (timer !== undefined || step === null || analysis?.predicts !== step) {
      return;
    }
    timer = setTimeout(() => {
      timer = undefined;
      const { state } = store;
      store.set(goTo(state, (state.step ?? 0) + 1));
    }, calm.matches ? CALM_PACE_MS : PACE_MS);
  });
}
