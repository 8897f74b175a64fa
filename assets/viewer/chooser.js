/** One of a few: a row of buttons, of which one is on; the arrow keys change it, as in every group of radio buttons. */
import { make, mark, say } from './dom.js';

/**
 * @template {string} Value
 * @param {readonly Value[]} values
 * @param {(value: Value) => void} choose
 */
export function chooser(values, choose) {
  const element = make('div', 'mg-choice', { role: 'radiogroup' });
  const options = values.map((value) => {
    const option = make('button', '', { type: 'button', role: 'radio' });
    option.addEventListener('click', () => choose(value));
    return element.appendChild(option);
  });
  element.addEventListener('keydown', (event) => {
    const here = options.findIndex((option) => option.getAttribute('aria-checked') === 'true');
    const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (move !== undefined) {
      event.preventDefault();
      const next = (here + move + values.length) % values.length;
      choose(values[next]);
      options[next].focus();
    }
  });
  return {
    element,
    /** @param {string} group @param {(value: Value) => string} name */
    name(group, name) {
      mark(element, 'aria-label', group);
      options.forEach((option, index) => say(option, name(values[index])));
    },
    /** @param {Value} value */
    show(value) {
      options.forEach((option, index) => {
        mark(option, 'aria-checked', String(values[index] === value));
        mark(option, 'tabindex', values[index] === value ? '0' : '-1');
      });
    },
  };
}
