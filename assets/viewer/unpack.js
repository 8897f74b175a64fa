/**
 * The block of arrays in a message: base64, compressed with zlib, each array at a multiple of four bytes; and the
 * attention weights in it, grouped so that they compress (`minigpt/wire.py` says how).
 *
 * @typedef {{dtype: 'uint8' | 'uint16' | 'int32' | 'float32', shape: number[], offset: number, bytes: number}} ArrayPlace
 * @typedef {Uint8Array | Uint16Array | Int32Array | Float32Array} Values
 * @typedef {{shape: number[], values: Values}} Table
 */

/** @type {Readonly<Record<ArrayPlace['dtype'], new (buffer: ArrayBuffer, offset: number, length: number) => Values>>} */
const VIEWS = { uint8: Uint8Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array };

/**
 * @param {string} text Base64.
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function bytesOf(text) {
  const native = /** @type {{fromBase64?: (text: string) => Uint8Array<ArrayBuffer>}} */ (
    /** @type {unknown} */ (Uint8Array)
  );
  if (native.fromBase64 !== undefined) {return native.fromBase64(text);}
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) {bytes[index] = binary.charCodeAt(index);}
  return bytes;
}

/**
 * Unpack the arrays of a message.
 *
 * @param {{arrays: Record<string, ArrayPlace>, payload: string}} message
 * @returns {Promise<Record<string, Table>>}
 */
export async function unpack({ arrays, payload }) {
  const stream = new Blob([bytesOf(payload)]).stream().pipeThrough(new DecompressionStream('deflate'));
  const buffer = await new Response(stream).arrayBuffer();
  /** @type {Record<string, Table>} */
  const tables = {};
  for (const [name, { dtype, shape, offset, bytes }] of Object.entries(arrays)) {
    const View = VIEWS[dtype];
    const size = dtype === 'uint8' ? 1 : dtype === 'uint16' ? 2 : 4;
    tables[name] = { shape, values: new View(buffer, offset, bytes / size) };
  }
  return tables;
}

/** Weights travel as whole numbers of this many parts. */
export const PARTS = 1000;
/** A cell's group is the first whose bound lies above the sum of the two cells over it. */
const BOUNDS = [1, 2, 3, 5, 7, 10, 15, 25, 50];
const GROUP = Uint8Array.from({ length: 2 * PARTS + 1 }, (_, sum) => BOUNDS.filter((bound) => sum >= bound).length);
/** The byte that stands for every weight from here on; the weight itself lies in a list of its own. */
const LARGE = 255;

/**
 * Put the weights of several heads back in their order: head after head, row after row of the lower triangle.
 *
 * @param {Record<string, Table>} tables
 * @param {'pattern' | 'thumbnail'} name
 * @param {number} side Cells on one side of a head.
 * @returns {Uint16Array} Weights in thousandths.
 */
export function weightsOf(tables, name, side) {
  const bytes = /** @type {Uint8Array} */ (tables[name].values);
  const large = /** @type {Uint16Array} */ (tables[`${name}_large`].values);
  const next = Int32Array.from(tables[`${name}_starts`].values);
  const weights = new Uint16Array(bytes.length);
  let nextLarge = 0;
  let row = 0;
  let query = 0;
  while (row < weights.length) {
    for (let key = 0; key <= query; key += 1) {
      const cell = row + key;
      const above = key < query ? weights[cell - query] : 0;
      const second = key < query - 1 ? weights[cell - 2 * query + 1] : 0;
      const byte = bytes[next[GROUP[above + second]]++];
      weights[cell] = byte === LARGE ? large[nextLarge++] : byte;
    }
    row += query + 1;
    query = (query + 1) % side;
  }
  return weights;
}

/**
 * A small picture's numbers, a row for each token or block of tokens.
 *
 * @typedef {object} Numbers
 * @property {number} rows
 * @property {number} columns
 * @property {number} most  The number furthest from 0, without its sign; 1 where all are 0.
 * @property {Float32Array} values  Row after row.
 */

/** A number of a picture travels as a whole number of this many parts of the largest, counted from `ZERO`. */
const PICTURE_HALF = 32767;
const ZERO = PICTURE_HALF + 1;

/**
 * The pictures in an answer.
 *
 * @param {{arrays: Record<string, ArrayPlace>, payload: string, most: Record<string, number>}} packed
 * @returns {Promise<Record<string, Numbers>>}
 */
export async function picturesOf(packed) {
  const tables = await unpack(packed);
  return Object.fromEntries(Object.entries(tables).map(([name, { shape: [rows, columns], values }]) => {
    const most = packed.most[name];
    return [name, { rows, columns, most, values: Float32Array.from(values, (parts) => ((parts - ZERO) / PICTURE_HALF) * most) }];
  }));
}
