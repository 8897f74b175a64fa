/**
 * What tokens were chosen from: reads the `steps` message. Only this module, with `unpack.js`, and `minigpt/wire.py` know its
 * layout.
 *
 * @typedef {import('./unpack.js').Table} Table
 *
 * @typedef {object} Choice  A token that could have come.
 * @property {number} id
 * @property {number} before  Its probability by the model itself.
 * @property {number} after  The probability that it could be drawn with.
 *
 * @typedef {object} Choices  What one token was chosen from.
 * @property {Choice[]} listed  Most likely first: the whole vocabulary, or the likeliest of a large one.
 * @property {{before: number, after: number}} rest  What all tokens hold together that are not listed.
 * @property {number} sampledFrom  How many tokens could be drawn.
 * @property {Choice & {rank: number}} taken  The token that came; rank 0 is the likeliest.
 * @property {Float32Array} scores  Scores of all heads on the tokens before it.
 * @property {(id: number) => string} piece  The text of an id.
 */
import { unpack } from './unpack.js';

/**
 * Steps that are asked for at once: fewer of a large vocabulary, as each is told with all of it.
 *
 * @param {number} vocabulary
 */
export const stepsAtOnce = (vocabulary) => (vocabulary > 512 ? 16 : 64);

/** The steps of one answer, from the first that was asked for on. */
export class Steps {
  #tables;
  #pieces;
  #taken;

  /**
   * @param {any} message
   * @param {Record<string, Table>} tables
   * @param {number[]} taken The tokens that came, the first that was asked for first.
   */
  constructor(message, tables, taken) {
    this.#pieces = /** @type {Record<string, string>} */ (message.pieces);
    this.#tables = tables;
    this.#taken = taken;
  }

  /**
   * @param {number} index Counted from the first step that was asked for.
   * @returns {Choices}
   */
  at(index) {
    const { choice_id: ids, choice_before: before, choice_after: after, choice_rest: rest } = this.#tables;
    const { sampled_from: sampled, taken_rank: rank, step_score: scores } = this.#tables;
    const [, count] = ids.shape;
    const heads = scores.values.length / scores.shape[0];
    return {
      listed: Array.from({ length: count }, (_, choice) => {
        const cell = index * count + choice;
        return { id: ids.values[cell], before: before.values[cell], after: after.values[cell] };
      }),
      rest: { before: rest.values[2 * index], after: rest.values[2 * index + 1] },
      sampledFrom: sampled.values[index],
      taken: {
        id: this.#taken[index],
        before: this.#tables.taken_before.values[index],
        after: this.#tables.taken_after.values[index],
        rank: rank.values[index],
      },
      scores: /** @type {Float32Array} */ (scores.values.subarray(index * heads, (index + 1) * heads)),
      piece: (id) => this.#pieces[id] ?? `#${id}`,
    };
  }
}

/**
 * Read a `steps` message.
 *
 * @param {any} message
 * @param {number[]} taken The tokens that were asked about.
 * @returns {Promise<Steps>}
 */
export async function readSteps(message, taken) {
  return new Steps(message, await unpack(message), taken);
}
