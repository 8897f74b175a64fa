/**
 * Brings what a step needs: the forward pass that predicted its token, and what the token was chosen from.
 *
 * While the window has not moved, all steps are rows of one forward pass, and all that is needed is what the page has, with the
 * choices of up to 64 steps in one answer. Once the window moves, or where only thumbnails of the heads are there, each step is
 * a forward pass of its own. What came is kept, within bounds, by the tokens that it is about, so it is never out of date.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Host} Host
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./state.js').Store} Store
 */
import { currentBranch } from './branches.js';
import { readAnalysis, readNotice } from './decode.js';
import { readSteps, stepsAtOnce } from './steps.js';
import { stepsOf, windowStart } from './time.js';

/** What is kept of each: windows are large. */
const KEPT_WINDOWS = 4;
const KEPT_STEPS = 12;

/**
 * @template Value
 * @typedef {(key: string, ask: () => Promise<Value>) => Value | null} Kept  What is there, or null after asking for it once.
 */

export class Moments {
  #store;
  #server;
  #windows = this.#kept(/** @type {Map<string, Analysis>} */ (new Map()), KEPT_WINDOWS);
  #steps = this.#kept(/** @type {Map<string, import('./steps.js').Steps>} */ (new Map()), KEPT_STEPS);

  /** @param {Store} store @param {Host['server']} server */
  constructor(store, server) {
    this.#store = store;
    this.#server = server;
    store.subscribe((_, changed) => {
      if (changed.has('step') || changed.has('whole')) {
        this.#show();
      }
    });
  }

  /**
   * Look at a branch: the last window of its text.
   *
   * @param {import('./branches.js').Branch} branch
   */
  async look(branch) {
    const { whole } = this.#store.state;
    if (whole === null) {
      return;
    }
    const text = [...whole.text.slice(0, branch.promptLength), ...branch.generated];
    const start = Math.max(0, text.length - whole.checkpoint.block_size);
    const ids = text.slice(start);
    const message = await this.#server.one_window(whole.checkpoint.name, ids);
    if (this.#store.state.whole !== whole) {
      return;
    }
    if (message?.kind !== 'analysis') {
      this.#fail(message);
      return;
    }
    const place = { start, end: text.length, cropped: text.slice(0, start), promptLength: branch.promptLength, moment: null };
    const looked = (await readAnalysis(message)).at(place);
    this.#store.set({ whole: looked, analysis: looked, branch: branch.id, step: null, choices: null, token: null, playing: false });
  }

  /** Put what the step needs into the state, once it is all there. */
  #show() {
    const { whole, step, analysis, playing } = this.#store.state;
    if (whole === null) {
      return;
    }
    if (step === null) {
      this.#store.set({ analysis: whole, choices: null });
      return;
    }
    const moment = this.#moment(whole, step);
    if (moment !== null && (analysis?.predicts !== step || analysis.request !== moment.analysis.request)) {
      this.#store.set({ ...moment, hovered: null });
    }
    if (playing && step < (stepsOf(whole)?.last ?? 0)) {
      this.#moment(whole, step + 1);
    }
  }

  /**
   * @param {Analysis} whole
   * @param {number} step
   * @returns {Pick<State, 'analysis' | 'choices'> & {analysis: Analysis} | null}
   */
  #moment(whole, step) {
    const start = windowStart(whole, step);
    const { text, promptLength } = whole;
    const block = whole.checkpoint.block_size;
    const source = this.#source(whole, text, start, step);
    const choices = this.#choices(whole, text, start, step);
    if (source === null || choices === null) {
      return null;
    }
    const edge = start === 0 ? Math.min(block, text.length) : step;
    const cropped = text.slice(0, start);
    const view = { start, end: step, cropped, promptLength, moment: { edge, scores: choices.scores } };
    return { analysis: source.at(view), choices };
  }

  /**
   * An analysis that begins with the tokens that the model saw.
   *
   * @param {Analysis} whole
   * @param {number[]} text
   * @param {number} start
   * @param {number} step
   * @returns {Analysis | null}
   */
  #source(whole, text, start, step) {
    if (whole.whole && whole.start === start) {
      return whole;
    }
    const end = whole.whole && start === 0 ? Math.min(text.length, whole.checkpoint.block_size) : step;
    const { name } = whole.checkpoint;
    const ids = text.slice(start, end);
    return this.#windows(`${name}:${ids.join()}`, async () => {
      const message = await this.#server.one_window(name, ids);
      return message?.kind === 'analysis' ? readAnalysis(message) : Promise.reject(message);
    });
  }

  /**
   * @param {Analysis} whole
   * @param {number[]} text
   * @param {number} start
   * @param {number} step
   * @returns {import('./steps.js').Choices | null}
   */
  #choices({ checkpoint, promptLength }, text, start, step) {
    const sampling = currentBranch(this.#store.state)?.sampling;
    if (sampling === undefined) {
      return null;
    }
    const { name, block_size: block } = checkpoint;
    const atOnce = stepsAtOnce(checkpoint.vocab_size);
    const origin = Math.max(1, promptLength);
    const first = start === 0 ? origin + Math.floor((step - origin) / atOnce) * atOnce : step;
    const end = start === 0 ? Math.min(first + atOnce, text.length, block + 1) : step + 1;
    const ids = text.slice(start, end);
    const steps = this.#steps(`${name}:${JSON.stringify(sampling)}:${first}:${ids.join()}`, async () => {
      const message = await this.#server.some_steps(name, ids, first - start, sampling);
      return message?.kind === 'steps' ? readSteps(message, text.slice(first, end)) : Promise.reject(message);
    });
    return steps?.at(step - first) ?? null;
  }

  /**
   * @template Value
   * @param {Map<string, Value>} values
   * @param {number} most
   * @returns {Kept<Value>}
   */
  #kept(values, most) {
    /** @type {Set<string>} */
    const asked = new Set();
    return (key, ask) => {
      const value = values.get(key);
      if (value !== undefined) {
        // The one looked at longest ago goes first.
        values.delete(key);
        values.set(key, value);
        return value;
      }
      if (!asked.has(key)) {
        asked.add(key);
        ask()
          .then((answer) => {
            values.set(key, answer);
            for (const old of Array.from(values.keys()).slice(0, -most)) {
              values.delete(old);
            }
            this.#show();
          }, (message) => this.#fail(message))
          .finally(() => asked.delete(key));
      }
      return null;
    };
  }

  /** @param {any} message What came instead of an answer. */
  #fail(message) {
    this.#store.set({ step: null, playing: false });
    if (message?.kind !== 'notice') {
      throw message instanceof Error ? message : new Error('The server did not answer.');
    }
    this.#store.set({ notice: readNotice(message) });
  }
}
