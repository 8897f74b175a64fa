/**
 * Read the message that crosses from the server. Only this module, with `unpack.js`, and `minigpt/wire.py` know its layout;
 * how attention travels is written there.
 *
 * @typedef {import('./types.js').Stream} Stream
 * @typedef {import('./types.js').Notice} Notice
 *
 * @typedef {import('./types.js').Training} Training
 * @typedef {import('./types.js').Moment} Moment
 * @typedef {import('./types.js').Results} Results
 * @typedef {import('./unpack.js').Table} Table
 *
 * @typedef {object} Checkpoint
 * @property {string} name
 * @property {string} kind
 * @property {number} n_layer
 * @property {number} n_head
 * @property {number} n_embd
 * @property {number} block_size
 * @property {number} vocab_size
 * @property {number} parameters
 * @property {string} tokenizer
 *
 * @typedef {{id: number, probability: number}} Choice
 * @typedef {{code: Uint8Array, side: number, room: number}} Thumbnail  Levels of a lower triangle, row after row, and the
 *   cells on one side of the picture, which may have room for more rows.
 *
 * @typedef {object} View  Where in a text an analysis is looked at, and how much of it.
 * @property {number} start  True position of its first token.
 * @property {number} end  True position after its last token.
 * @property {number[]} cropped  Ids of the tokens before.
 * @property {number} promptLength
 * @property {{edge: number, scores: Float32Array, predicts?: number | null} | null} moment  At a step: the true position after the last token that
 *   pictures leave room for, and the scores of all heads on the tokens up to the end.
 */

import { levelOf } from './colours.js';
import { bytesOf, PARTS, unpack, weightsOf } from './unpack.js';

export const VERSION = 1;
const KEPT_HEADS = 12;

/** The colour level of each weight. */
const LEVEL = Uint8Array.from({ length: PARTS + 1 }, (_, parts) => levelOf(parts / PARTS));

/** @param {number} side @returns {number} The cells of a lower triangle. */
const triangle = (side) => (side * (side + 1)) / 2;

/** @typedef {{low: number, top: number}} Span  What 0 and 1000 thousandths stand for. */

/** @type {Span} */
const WEIGHTS = { low: 0, top: 1 };

/** The attention of one head; weights are expanded when they are first read. */
export class Head {
  /** @type {Float32Array | null} */
  #weights = null;
  #parts;

  #span;

  /**
   * @param {Uint16Array} parts A lower triangle, row after row, in thousandths.
   * @param {number} side Tokens.
   * @param {Span} [span]
   */
  constructor(parts, side, span = WEIGHTS) {
    this.#parts = parts;
    this.#span = span;
    this.side = side;
  }

  /** @returns {Float32Array} */
  get #cells() {
    const { low, top } = this.#span;
    this.#weights ??= Float32Array.from(this.#parts, (parts) => low + (parts / PARTS) * (top - low));
    return this.#weights;
  }

  /**
   * What a query attends to: one weight for each key from the window's first to the query itself.
   *
   * @param {number} query Index in the window.
   * @returns {Float32Array}
   */
  row(query) {
    const start = triangle(query);
    return this.#cells.subarray(start, start + query + 1);
  }

  /**
   * How much each query from the key itself to the window's last attends to a key.
   *
   * @param {number} key Index in the window.
   * @returns {Float32Array}
   */
  column(key) {
    const cells = this.#cells;
    return Float32Array.from({ length: this.side - key }, (_, index) => cells[triangle(key + index) + key]);
  }

  /**
   * All rows as a square; the future, which has no weights, is NaN.
   *
   * @returns {Float32Array[]}
   */
  rows() {
    const square = new Float32Array(this.side * this.side).fill(Number.NaN);
    return Array.from({ length: this.side }, (_, query) => {
      const row = square.subarray(query * this.side, (query + 1) * this.side);
      row.set(this.row(query));
      return row;
    });
  }
}

/** Everything that was computed for one text. Positions are true positions in the text, indices count in the window. */
export class Analysis {
  #pieces;
  #tables;
  #block;
  /** All heads, one after another, in thousandths: at full resolution or in blocks of tokens. */
  #parts;
  /** @type {Map<string, Head>} The heads read last, the newest at the end. */
  #heads = new Map();
  /** @type {Set<string>} The heads that were asked for and are not there yet. */
  #asked = new Set();
  /** @type {Map<string, number>} What each head reaches. */
  #reached = new Map();

  #message;
  /** Cells on one side of a head among `#parts`. */
  #stride;
  #scores;

  /**
   * @param {any} message
   * @param {Record<string, Table>} tables
   * @param {{parts: Uint16Array, stride: number, moment: View['moment'], span?: Span}} [cut] A view of the first tokens of an
   *   analysis, or other numbers in its cells.
   */
  constructor(message, tables, cut) {
    this.#message = message;
    this.request = /** @type {number} */ (message.request);
    this.checkpoint = /** @type {Checkpoint} */ (message.checkpoint);
    this.ids = /** @type {number[]} */ (message.tokens.ids);
    this.cropped = /** @type {number[]} */ (message.tokens.cropped);
    this.start = /** @type {number} */ (message.tokens.start);
    this.promptLength = /** @type {number} */ (message.tokens.prompt_length);
    this.run = /** @type {import('./types.js').Run | null} */ (message.run ?? null);
    /** What was changed in the text so that the model could read it. */
    this.respelled = /** @type {('newlines' | 'composed' | 'decomposed')[]} */ (message.respelled ?? []);
    this.checks = /** @type {{logit_difference: number, compared: number, row_sum_error: number}} */ (message.checks);
    this.scores = /** @type {string[]} */ (message.scores);
    this.layers = this.checkpoint.n_layer;
    this.heads = this.checkpoint.n_head;
    this.#pieces = /** @type {Record<string, string>} */ (message.pieces);
    this.#block = /** @type {number} */ (message.thumbnail_block ?? 1);
    this.#tables = tables;
    this.whole = 'pattern' in tables;
    this.#stride = cut?.stride ?? this.#side;
    this.#parts = cut?.parts ?? weightsOf(tables, this.whole ? 'pattern' : 'thumbnail', this.#side);
    this.#scores = cut?.moment?.scores ?? /** @type {Float32Array} */ (tables.head_score.values);
    /** The true position after the last token that pictures leave room for. */
    this.edge = cut?.moment?.edge ?? this.end;
    /** True position of the token that this forward pass predicted; null where the whole text is looked at. */
    this.predicts = cut?.moment ? (cut.moment.predicts === undefined ? this.end : cut.moment.predicts) : null;
    this.span = cut?.span ?? WEIGHTS;
  }

  /**
   * The first tokens of this analysis, at another place. Attention is causal: what came later changed nothing before it, so
   * these are the rows of a forward pass over those tokens alone.
   *
   * @param {View} view
   * @returns {Analysis}
   */
  at({ start, end, cropped, promptLength, moment }) {
    const tokens = { ids: this.ids.slice(0, end - start), start, cropped, prompt_length: promptLength };
    return new Analysis({ ...this.#message, tokens }, this.#tables, { parts: this.#parts, stride: this.#stride, moment });
  }

  /**
   * The same analysis with other numbers in its cells.
   *
   * @param {Record<string, Table>} tables Of a `view` message.
   * @param {Span} span
   * @returns {Analysis}
   */
  showing(tables, span) {
    const moment = { edge: this.edge, scores: this.#scores, predicts: this.predicts };
    const cut = { parts: weightsOf(tables, 'pattern', this.length), stride: this.length, moment, span };
    return new Analysis(this.#message, { ...this.#tables, ...tables }, cut);
  }

  /** Ids of the whole text, from its first token to the last of the window. */
  get text() {
    return [...this.cropped, ...this.ids];
  }

  /** Tokens in the window. */
  get length() {
    return this.ids.length;
  }

  /** The true position after the last token. */
  get end() {
    return this.start + this.ids.length;
  }

  /** Cells on one side of a head as it travelled. */
  get #side() {
    return this.whole ? this.length : Math.ceil(this.length / this.#block);
  }

  /**
   * The text of an id.
   *
   * @param {number} id
   * @returns {string}
   */
  piece(id) {
    return this.#pieces[id] ?? `#${id}`;
  }

  /**
   * The token at a true position inside the window.
   *
   * @param {number} position
   * @returns {string}
   */
  token(position) {
    return this.piece(this.ids[position - this.start]);
  }

  /**
   * One head, or null where it has to be asked for first.
   *
   * @param {number} layer
   * @param {number} head
   * @returns {Head | null}
   */
  head(layer, head) {
    const name = `${layer}:${head}`;
    const index = layer * this.heads + head;
    let found = this.#heads.get(name) ?? null;
    if (found === null && this.whole) {
      found = new Head(this.#travelled(index), this.length, this.span);
    }
    if (found !== null) {this.keep(layer, head, found);}
    return found;
  }

  /**
   * Keep a head for the next look; the one looked at longest ago goes when there are too many.
   *
   * @param {number} layer
   * @param {number} head
   * @param {Head} pattern
   */
  keep(layer, head, pattern) {
    const name = `${layer}:${head}`;
    this.#asked.delete(name);
    this.#heads.delete(name);
    this.#heads.set(name, pattern);
    if (this.#heads.size > KEPT_HEADS) {
      const [oldest] = this.#heads.keys();
      this.#heads.delete(oldest);
    }
  }

  /**
   * Whether a head has to be asked for now; true once, until it is there.
   *
   * @param {number} layer
   * @param {number} head
   * @returns {boolean}
   */
  needs(layer, head) {
    const name = `${layer}:${head}`;
    if (this.#asked.has(name) || this.head(layer, head) !== null) {
      return false;
    }
    this.#asked.add(name);
    return true;
  }

  /**
   * A head that was asked for did not come.
   *
   * @param {number} layer
   * @param {number} head
   */
  forget(layer, head) {
    this.#asked.delete(`${layer}:${head}`);
  }

  /**
   * The small picture of a head: the largest level of each block of cells.
   *
   * @param {number} layer
   * @param {number} head
   * @param {number} most Most cells on one side.
   * @param {Uint8Array} [levels] The level of each number of thousandths.
   * @returns {Thumbnail}
   */
  thumbnail(layer, head, most, levels = LEVEL) {
    const room = Math.ceil((this.edge - this.start) / (this.whole ? 1 : this.#block));
    const block = Math.ceil(room / most);
    const signed = this.span.low < 0;
    const pooled = pool(this.#travelled(layer * this.heads + head), this.#side, block, levels, signed);
    return { ...pooled, room: Math.ceil(room / block) };
  }

  /**
   * The largest weight of a head in the later half of the window. The first queries have hardly a choice (the very first always
   * looks at itself with weight 1), so that in the whole window every head would reach about the same. Of numbers with a sign, the
   * largest distance from 0, as a share of the scale.
   *
   * @param {number} layer
   * @param {number} head
   * @param {boolean} skipFirst Leave the window's first key out.
   * @returns {number} 0 to 1.
   */
  reach(layer, head, skipFirst) {
    const name = `${layer}:${head}:${skipFirst}`;
    const known = this.#reached.get(name);
    if (known !== undefined) {
      return known;
    }
    const parts = this.#travelled(layer * this.heads + head);
    const first = skipFirst ? 1 : 0;
    const signed = this.span.low < 0;
    let largest = 0;
    for (let query = Math.floor(this.#side / 2); query < this.#side; query += 1) {
      const row = triangle(query);
      for (let cell = row + first; cell <= row + query; cell += 1) {
        largest = Math.max(largest, signed ? Math.abs(2 * parts[cell] - PARTS) : parts[cell]);
      }
    }
    this.#reached.set(name, largest / PARTS);
    return largest / PARTS;
  }

  /**
   * A head's score, NaN where it is undefined.
   *
   * @param {string} name
   * @param {number} layer
   * @param {number} head
   * @returns {number}
   */
  score(name, layer, head) {
    const index = this.scores.indexOf(name);
    return this.#scores[(index * this.layers + layer) * this.heads + head];
  }

  /**
   * What the model expects after a position, most likely first.
   *
   * @param {number} position
   * @returns {Choice[]}
   */
  next(position) {
    const { shape, values } = this.#tables.next_id;
    const from = (position - this.start) * shape[1];
    return Array.from(values.subarray(from, from + shape[1]), (id, index) => ({
      id,
      probability: this.#tables.next_probability.values[from + index],
    }));
  }

  /**
   * The token that really follows a position, or null at the end.
   *
   * @param {number} position
   * @returns {{id: number, probability: number, rank: number} | null} Rank 0 is the likeliest.
   */
  taken(position) {
    const index = position - this.start;
    const rank = this.#tables.taken_rank.values[index];
    if (rank < 0 || index + 1 >= this.length) {return null;}
    return { id: this.ids[index + 1], probability: this.#tables.taken_probability.values[index], rank };
  }

  /** @param {number} index The head's place among all. @returns {Uint16Array} */
  #travelled(index) {
    const first = index * triangle(this.#stride);
    return this.#parts.subarray(first, first + triangle(this.#side));
  }
}

/**
 * The colour level of the largest weight in each block of a lower triangle.
 *
 * @param {Uint16Array} parts In thousandths.
 * @param {number} length Cells on one side.
 * @param {number} block Cells along one side of a block.
 * @param {Uint8Array} levels The level of each number of thousandths.
 * @param {boolean} signed Whether the middle stands for 0, so that the largest is the one farthest from it.
 * @returns {{code: Uint8Array, side: number}}
 */
function pool(parts, length, block, levels, signed) {
  if (block === 1) {
    return { code: Uint8Array.from(parts, (weight) => levels[weight]), side: length };
  }
  const side = Math.ceil(length / block);
  if (signed) {
    return { code: poolSigned(parts, length, block, levels), side };
  }
  const code = new Uint8Array(triangle(side));
  let cell = 0;
  for (let query = 0; query < length; query += 1) {
    let place = triangle(Math.floor(query / block));
    for (let key = 0; key <= query; key += block, place += 1) {
      const end = cell + Math.min(block, query + 1 - key);
      let largest = 0;
      for (; cell < end; cell += 1) {
        if (parts[cell] > largest) {
          largest = parts[cell];
        }
      }
      code[place] = Math.max(code[place], levels[largest]);
    }
  }
  return { code, side };
}

/**
 * The same for what can be negative: of each block the number farthest from the middle.
 *
 * @param {Uint16Array} parts
 * @param {number} length
 * @param {number} block
 * @param {Uint8Array} levels
 * @returns {Uint8Array}
 */
function poolSigned(parts, length, block, levels) {
  const pooled = new Uint16Array(triangle(Math.ceil(length / block))).fill(PARTS / 2);
  let cell = 0;
  for (let query = 0; query < length; query += 1) {
    const row = triangle(Math.floor(query / block));
    for (let key = 0; key <= query; key += 1, cell += 1) {
      const place = row + Math.floor(key / block);
      if (Math.abs(parts[cell] - PARTS / 2) > Math.abs(pooled[place] - PARTS / 2)) {
        pooled[place] = parts[cell];
      }
    }
  }
  return Uint8Array.from(pooled, (weight) => levels[weight]);
}

/**
 * Read an `analysis` message.
 *
 * @param {any} message
 * @returns {Promise<Analysis>}
 */
export async function readAnalysis(message) {
  return new Analysis(message, await unpack(message));
}

/**
 * Read a `head` message: one head at full resolution.
 *
 * @param {any} message
 * @returns {Promise<Head>}
 */
export async function readHead(message) {
  const tables = await unpack(message);
  const side = Math.round((Math.sqrt(8 * tables.pattern.values.length + 1) - 1) / 2);
  return new Head(weightsOf(tables, 'pattern', side), side);
}

/**
 * Read a `generating` message.
 *
 * @param {any} message
 * @returns {Stream}
 */
export function readStream(message) {
  const { request, generated, pieces, prompt_length: promptLength, done, run } = message;
  return { request, generated, pieces, promptLength, seed: run.sampling.seed, done, run };
}

/**
 * Read a `notice` message.
 *
 * @param {any} message
 * @returns {Notice}
 */
export function readNotice(message) {
  const { code, sentences, action } = message;
  return { code, sentences, action };
}

/**
 * Read a `file` message.
 *
 * @param {any} message
 * @returns {{name: string, blob: Blob}}
 */
export function readFile({ name, media_type: type, content }) {
  return { name, blob: new Blob([bytesOf(content)], { type }) };
}

/**
 * Read a `view` message: other numbers in the cells of an analysis.
 *
 * @param {any} message
 * @param {Analysis} analysis
 * @returns {Promise<Analysis>}
 */
export async function readView(message, analysis) {
  return analysis.showing(await unpack(message), { low: message.low, top: message.top });
}

/**
 * Read a `training` message.
 *
 * @param {any} message
 * @returns {Promise<Training>}
 */
export async function readTraining(message) {
  const { name, runs, records, steps, scores } = message;
  const { curve, appeared } = await unpack(message);
  const [, , layers, heads] = curve.shape;
  /** @param {string} score @param {number} layer @param {number} head */
  const row = (score, layer, head) => [scores.indexOf(score), layer * heads + head];
  return {
    name,
    runs,
    records,
    steps,
    scores,
    layers,
    heads,
    curve(score, layer, head) {
      const [first, place] = row(score, layer, head);
      return steps.map((/** @type {number} */ _, /** @type {number} */ index) => curve.values[(first * steps.length + index) * layers * heads + place]);
    },
    appeared(score, layer, head) {
      const [first, place] = row(score, layer, head);
      const step = appeared.values[first * layers * heads + place];
      return step < 0 ? null : step;
    },
  };
}

/**
 * Read a `moment` message.
 *
 * @param {any} message
 * @returns {Promise<Moment>}
 */
export async function readMoment({ step, analysis, own_text: ownText, loss, sample }) {
  return { step, analysis: await readAnalysis(analysis), ownText, loss, sample };
}

/**
 * Read an `experiment` message.
 *
 * @param {any} message
 * @returns {Promise<Results>}
 */
export async function readResults({ names, name, experiment, preset, steps, characters, batches, seeds, against, rows, curves, sides }) {
  /** @param {any} side */
  const read = async (side) => ({ ...side, analysis: side.analysis === null ? null : await readAnalysis(side.analysis) });
  /** @param {any} row */
  const named = ({ told_apart: toldApart, ...rest }) => ({ ...rest, toldApart });
  const all = { names, name, experiment, preset, steps, characters, batches, seeds, against, curves };
  return { ...all, rows: rows.map(named), sides: await Promise.all(sides.map(read)) };
}
