/**
 * Bytes as a short word of letters, digits, `-` and `_`, which addresses and chats leave alone: deflated, then base64url.
 */

/** @param {Uint8Array} bytes @returns {string} */
function toWord(bytes) {
  let binary = '';
  for (const byte of bytes) {
    binary += String.fromCharCode(byte);
  }
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @param {string} word @returns {Uint8Array<ArrayBuffer>} */
function fromWord(word) {
  if (!/^[\w-]*$/.test(word)) {
    throw new RangeError('Not a word of base64url.');
  }
  const binary = atob(word.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Promise<string>}
 */
export async function pack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  return toWord(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/**
 * @param {string} word
 * @param {number} most Bytes at most, however far the word would inflate.
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function unpackWord(word, most) {
  const reader = new Blob([fromWord(word)]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  const bytes = new Uint8Array(most);
  let length = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (length + next.value.length > most) {
      void reader.cancel();
      throw new RangeError(`More than ${most} bytes.`);
    }
    bytes.set(next.value, length);
    length += next.value.length;
  }
  return bytes.slice(0, length);
}

/**
 * Whole numbers from 0 to 2³² − 1 as bytes: seven bits in each, the lowest first; the eighth says that more follow.
 *
 * @param {number[]} numbers
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function toBytes(numbers) {
  const bytes = [];
  for (let number of numbers) {
    while (number >= 128) {
      bytes.push((number % 128) + 128);
      number = Math.floor(number / 128);
    }
    bytes.push(number);
  }
  return Uint8Array.from(bytes);
}

/**
 * @param {Uint8Array} bytes
 * @returns {number[]}
 */
export function toNumbers(bytes) {
  const numbers = [];
  let [number, place] = [0, 1];
  for (const byte of bytes) {
    number += (byte % 128) * place;
    place *= 128;
    if (byte < 128) {
      numbers.push(number);
      [number, place] = [0, 1];
    }
  }
  if (place !== 1) {
    throw new RangeError('The last number is cut.');
  }
  return numbers;
}
