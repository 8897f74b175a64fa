/**
 * A question that a tab puts to the server: asked once for what is on the page, and an answer that comes after something else was
 * asked is dropped.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Host} Host
 * @typedef {import('./types.js').Notice} Notice
 * @typedef {import('./decode.js').Analysis} Analysis
 *
 * @typedef {object} About  What a question is about.
 * @property {string} model
 * @property {number[]} ids  The tokens that the model sees.
 */
import { readNotice } from './decode.js';

/**
 * @param {Analysis} analysis
 * @returns {About}
 */
export function aboutOf({ checkpoint, ids }) {
  return { model: checkpoint.name, ids };
}

/** @param {Readonly<State>} state @returns {boolean} Whether the text is still being written, so that it is too early to ask. */
export function isWriting({ stream }) {
  return stream !== null && !stream.done;
}

/** @param {About} about @param {object} options */
const keyOf = ({ model, ids }, options) => JSON.stringify([model, ids, options]);

/** @template Value */
export class Asking {
  #host;
  #question;
  #answered;
  #asked = '';
  #about = '';
  #failed = false;
  /** @type {Value | null} The answer; while another is waited for, the last one about the same text. */
  value = null;
  /** @type {any} The options that `value` answers, so that a picture and its title always belong together. */
  options = null;
  /** @type {Notice | null} Why there is no answer. */
  notice = null;
  isWaiting = false;

  /**
   * @param {Host} host
   * @param {string} question
   * @param {() => void} answered Called when there is an answer, or a notice.
   */
  constructor(host, question, answered) {
    this.#host = host;
    this.#question = question;
    this.#answered = answered;
  }

  /**
   * Ask, unless the same was asked last.
   *
   * @param {About} about
   * @param {object} options
   */
  ask(about, options) {
    const asked = keyOf(about, options);
    // What failed may be asked again.
    if (asked === this.#asked && !this.#failed) {
      return;
    }
    const text = keyOf(about, {});
    if (text !== this.#about) {
      this.value = null;
    }
    [this.#about, this.#asked, this.#failed, this.notice, this.isWaiting] = [text, asked, false, null, true];
    /** @param {any} message */
    const receive = (message) => {
      if (asked !== this.#asked) {
        return;
      }
      this.isWaiting = false;
      this.value = message?.kind === 'answer' ? message.value : null;
      this.options = options;
      this.notice = message?.kind === 'notice' ? readNotice(message) : null;
      this.#failed = this.value === null;
      this.#answered();
    };
    this.#host.server.ask(about.model, about.ids, this.#question, options).then(receive, () => receive(null));
  }

  /**
   * Whether this is what was asked last.
   *
   * @param {About} about
   * @param {object} options
   */
  isFor(about, options) {
    return keyOf(about, options) === this.#asked;
  }
}

/**
 * What is said while there is no answer.
 *
 * @param {import('./types.js').Translate} translate
 * @param {Asking<any>} asking
 * @param {import('./types.js').Language} language
 * @returns {string}
 */
export function statusOf(translate, { value, notice, isWaiting }, language) {
  if (isWaiting) {
    // While the last answer is still there, it is dimmed; a line that comes and goes would move everything below it.
    return value === null ? translate('asking') : '';
  }
  return notice?.sentences[language] ?? (value === null ? translate('asking_failed') : '');
}
