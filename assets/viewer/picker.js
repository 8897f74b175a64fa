/** One of several, by name: a list that opens, for choices that are too many or too changing for a row of buttons. */
import { make, say } from './dom.js';

/**
 * A word beside a list of words to choose from.
 *
 * @param {(value: string) => void} choose
 */
export function picker(choose) {
  const label = make('span');
  const select = make('select', 'mg-field mg-picker');
  select.addEventListener('change', () => choose(select.value));
  return {
    element: make('label', 'mg-inline', {}, [label, select]),
    /** @param {string} name @param {string[][]} options Value and word of each. @param {string} chosen */
    show(name, options, chosen) {
      say(label, name);
      const key = JSON.stringify(options);
      if (select.dataset.options !== key) {
        select.dataset.options = key;
        select.replaceChildren(...options.map(([value, word]) => make('option', '', { value }, [word])));
      }
      select.value = chosen;
    },
  };
}
