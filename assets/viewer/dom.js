/** Making elements: text is only ever set as text, never read as HTML. */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} [children]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, className = '', attributes = {}, children = []) {
  const element = document.createElement(tag);
  if (className !== '') {element.className = className;}
  for (const [name, value] of Object.entries(attributes)) {element.setAttribute(name, value);}
  element.append(...children);
  return element;
}

/**
 * Set an element's text, touching the page only where it differs.
 *
 * @param {Element} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) {element.textContent = text;}
}

/**
 * Set an attribute, touching the page only where it differs.
 *
 * @param {Element} element
 * @param {string} name
 * @param {string} value
 */
export function mark(element, name, value) {
  if (element.getAttribute(name) !== value) {element.setAttribute(name, value);}
}

/**
 * A button with a word.
 *
 * @param {string} className
 * @param {() => void} press
 */
export function wordButton(className, press) {
  const element = make('button', className, { type: 'button' });
  element.addEventListener('click', press);
  return {
    element,
    /** @param {string} text */
    name(text) {
      say(element, text);
    },
  };
}
