/**
 * What a screen reader should say, in one polite region: what was drawn, the chosen head and token, the cell that keys reached,
 * and how generation goes.
 *
 * Whatever changes quickly is said once it rests, so that a key held down or a text typed fast is not read out step by step.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 */
import { make, say } from './dom.js';
import { digits, named } from './glyphs.js';
import { cellSentence, largest } from './readout.js';
import { strongest } from './scores.js';
import { attentionOf, chosenToken } from './state.js';

/** How long everything rests before it is said. */
const REST_MS = 500;
const TOLD_WEIGHTS = 3;

/** @param {() => Translate} words @returns {View} */
export function liveView(words) {
  const element = make('p', 'mg-hidden mg-live', { role: 'status', 'aria-live': 'polite' });
  /** @type {Map<string, string>} What waits to be said, by subject. */
  const waiting = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let isRunning = false;
  let generated = 0;

  /** @param {string} subject @param {string} sentence */
  function tell(subject, sentence) {
    waiting.delete(subject);
    if (sentence !== '') {
      waiting.set(subject, sentence);
    }
    clearTimeout(timer);
    timer = setTimeout(() => {
      say(element, Array.from(waiting.values()).join(' '));
      waiting.clear();
    }, REST_MS);
  }

  /** @param {Readonly<State>} state @param {ReadonlySet<keyof State>} changed */
  function generation({ analysis, stream, notice }, changed) {
    if (stream !== null && changed.has('stream')) {
      generated = stream.generated.length;
      if (stream.done) {
        tell('generation', words()('live_finished', { count: generated }));
      } else if (!isRunning) {
        tell('generation', words()('live_started'));
      }
      isRunning = !stream.done;
      return;
    }
    if (isRunning && changed.has('stops')) {
      tell('generation', words()('live_stopped', { count: generated }));
      isRunning = false;
    }
    // Typing ends what was running, and so does an error.
    const typed = changed.has('analysis') && analysis !== null && analysis.promptLength >= analysis.end;
    if (typed || notice !== null) {
      isRunning = false;
    }
  }

  /** @param {Readonly<State>} state @param {ReadonlySet<keyof State>} changed */
  function pictures(state, changed) {
    const { analysis, hovered, playing } = state;
    if (analysis === null || isRunning || playing) {
      return;
    }
    if (changed.has('analysis')) {
      const { length, layers, heads } = analysis;
      tell('drawn', words()('live_drawn', { count: length, layers, heads }));
    }
    if (changed.has('layer') || changed.has('head')) {
      tell('head', headSentence(words(), state));
    }
    if (['token', 'direction', 'layer', 'head', 'fetched'].some((name) => changed.has(/** @type {keyof State} */ (name)))) {
      tell('token', tokenSentence(words(), state));
    }
    if (changed.has('hovered') && hovered?.keys === true) {
      waiting.clear();
      tell('cell', cellSentence(words(), state));
    }
  }

  return {
    element,
    update(state, changed) {
      if (changed.has('language')) {
        // What is still waiting was put into the other language.
        clearTimeout(timer);
        waiting.clear();
        say(element, '');
      }
      generation(state, changed);
      pictures(state, changed);
    },
  };
}

/** @param {Translate} translate @param {Readonly<State>} state @returns {string} The chosen head, and what it mostly does. */
function headSentence(translate, { analysis, layer, head }) {
  const name = translate('detail', { layer, head, name: `L${layer}H${head}` });
  const best = analysis === null ? null : strongest(analysis, layer, head);
  const does = best === null ? translate('live_nothing') : `${translate(`score_${best.name}`)} ${best.value.toFixed(2)}`;
  return translate('live_head', { name, does });
}

/** @param {Translate} translate @param {Readonly<State>} state @returns {string} The largest weights of the chosen token. */
function tokenSentence(translate, state) {
  const position = chosenToken(state);
  const attention = attentionOf(state, position);
  const { analysis } = state;
  if (analysis === null || position === null || attention === null) {
    return '';
  }
  const subject = translate(`readout_${state.direction}`, { token: named(analysis.token(position), position) });
  const tops = largest(attention).slice(0, TOLD_WEIGHTS);
  return `${subject}: ${tops.map((top) => `${named(analysis.token(top.position), top.position)} ${digits(top.weight)}`).join(', ')}.`;
}
