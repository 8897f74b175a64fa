/** Giving the person a file. */

/**
 * @param {string} name
 * @param {Blob} blob
 */
export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The browser has to begin reading first.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * A text as a part of a file's name.
 *
 * @param {string} text
 * @returns {string}
 */
export function fileName(text) {
  const name = text.replaceAll(/[^\p{L}\p{N}_.]+/gu, '-').replaceAll(/^[-._]+|[-._]+$/g, '');
  return name.slice(0, 60) || 'model';
}
