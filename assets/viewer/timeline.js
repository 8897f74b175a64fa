/**
 * The way through time: a slider over the generated tokens, buttons for one step, and a replay. The place behind the last step
 * is the whole text.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./state.js').Store} Store
 */
import { currentBranch } from './branches.js';
import { make, mark, say } from './dom.js';
import { named } from './glyphs.js';
import { playerBar } from './playerbar.js';
import { chosenToken } from './state.js';
import { goTo, play, stepsOf } from './time.js';

/**
 * @param {Store} store
 * @param {() => Translate} words
 * @returns {import('./types.js').View}
 */
export function timelineView(store, words) {
  const title = make('h2', 'mg-title');
  const place = make('span', 'mg-count');
  const why = make('button', 'mg-step mg-why', { type: 'button' });
  const now = make('button', 'mg-step mg-now', { type: 'button' });
  const header = make('header', 'mg-header', {}, [title, place, make('div', 'mg-steps', {}, [why, now])]);

  /** @param {number | null} step */
  const still = (step) => store.set({ ...goTo(store.state, step), playing: false });
  /** @returns {number} The step that is asked about, or the place behind the last. */
  const here = () => store.state.step ?? (stepsOf(store.state.whole)?.last ?? 0) + 1;
  const acts = {
    first: () => still(stepsOf(store.state.whole)?.first ?? null),
    back: () => still(here() - 1),
    play: () => store.set(store.state.playing ? { playing: false } : play(store.state)),
    forward: () => still(here() + 1),
    last: () => still(stepsOf(store.state.whole)?.last ?? null),
  };
  const bar = playerBar(acts, still);
  const element = make('section', 'mg-panel mg-area-time', {}, [header, ...bar.elements]);
  now.addEventListener('click', () => still(null));
  why.addEventListener('click', () => still(chosenToken(store.state)));

  /** @param {Readonly<State>} state */
  function label({ playing }) {
    const translate = words();
    say(title, translate('time'));
    mark(element, 'aria-label', translate('time'));
    say(now, translate('time_now'));
    bar.label((key) => translate(`time_${key}`), playing);
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const { whole, step, playing, stream } = state;
    const steps = currentBranch(state) === null ? null : stepsOf(whole);
    element.hidden = whole === null || steps === null;
    if (whole === null || steps === null) {
      return;
    }
    const sentence = sentences(words(), state, steps);
    say(place, sentence.place);
    const atFirst = step === steps.first;
    bar.reach(steps.first, steps.last + 1);
    bar.show(step ?? steps.last + 1, sentence.place, { first: atFirst, back: atFirst, forward: step === null, last: step === steps.last });
    // A replay speaks only where it stops.
    if (!playing && stream?.done !== false) {
      bar.say(sentence.said);
    }
    now.disabled = step === null;
    const token = chosenToken(state);
    const generated = token !== null && token >= steps.first && step === null;
    why.hidden = !generated;
    if (generated) {
      say(why, words()('time_why', { token: named(whole.token(token), token) }));
    }
  }

  return {
    element,
    update(state, changed) {
      if (changed.has('language') || changed.has('playing')) {
        label(state);
      }
      show(state);
    },
  };
}

/**
 * Where in time the page is, and what is seen there.
 *
 * @param {Translate} translate
 * @param {Readonly<State>} state
 * @param {{first: number, last: number}} steps
 * @returns {{place: string, said: string}}
 */
function sentences(translate, { whole, analysis, step }, { first, last }) {
  const count = last - first + 1;
  if (whole === null || step === null) {
    return { place: translate('time_whole', { count }), said: translate('time_hint') };
  }
  const token = named(whole.piece(whole.text[step]), step);
  const place = translate('time_step', { index: step - first + 1, count, token });
  if (analysis?.predicts !== step) {
    return { place, said: '' };
  }
  const values = { token, query: step - 1, start: analysis.start, count: analysis.length };
  return { place, said: translate('time_predicted', values) };
}
