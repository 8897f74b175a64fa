/** Making SVG elements: text is only ever set as text. */

const NAMESPACE = 'http://www.w3.org/2000/svg';

/** @typedef {Record<string, string | number>} Attributes */

/**
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {(Node | string)[]} [children]
 * @returns {SVGElement}
 */
export function draw(tag, attributes = {}, children = []) {
  const element = /** @type {SVGElement} */ (document.createElementNS(NAMESPACE, tag));
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {Attributes} [attributes]
 * @returns {SVGElement}
 */
export function write(text, x, y, attributes = {}) {
  return draw('text', { x, y, ...attributes }, [printable(text)]);
}

/** @param {string} text @returns {string} Without what XML cannot hold; signs stand for it everywhere else. */
function printable(text) {
  // eslint-disable-next-line no-control-regex
  return text.toWellFormed().replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');
}

/**
 * A drawing as the text of a file.
 *
 * @param {SVGElement} drawing
 * @returns {string}
 */
export function textOf(drawing) {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(drawing)}\n`;
}

/**
 * A drawing as pixels.
 *
 * @param {SVGElement} drawing With a width and a height.
 * @param {number} scale Pixels for each unit.
 * @returns {Promise<Blob>} A PNG.
 */
export async function pixelsOf(drawing, scale) {
  const address = URL.createObjectURL(new Blob([textOf(drawing)], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = Number(drawing.getAttribute('width')) * scale;
    canvas.height = Number(drawing.getAttribute('height')) * scale;
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob === null ? reject(new Error('The picture is too large.')) : resolve(blob)), 'image/png');
    });
  } finally {
    URL.revokeObjectURL(address);
  }
}
