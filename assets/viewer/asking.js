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

/** @template Value */
export class Asking {
  #host;
  #question;
  #answered;
  #asked = '';
  #about = '';
  /** @type {Value | null} The answer; while another is waited for, the last one about the same text. */
  value = null;
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
  ask({ model, ids }, options) {
    const about = JSON.stringify([model, ids]);
    const asked = about + JSON.stringify(options);
    if (asked === this.#asked) {
      return;
    }
    if (about !== this.#about) {
      this.value = null;
    }
    [this.#about, this.#asked, this.notice, this.isWaiting] = [about, asked, null, true];
    /** @param {any} message */
    const receive = (message) => {
      if (asked !== this.#asked) {
        return;
      }
      this.isWaiting = false;
      this.value = message?.kind === 'answer' ? message.value : null;
      this.notice = message?.kind === 'notice' ? readNotice(message) : null;
      if (this.value === null) {
        // What failed may be asked again.
        this.#asked = '';
      }
      this.#answered();
    };
    this.#host.server.ask(model, ids, this.#question, options).then(receive, () => receive(null));
  }

  /** Forget what was asked and answered. */
  forget() {
    [this.#about, this.#asked, this.value, this.notice, this.isWaiting] = ['', '', null, null, false];
  }
}
