/** One of several, by name: a list that opens, for choices that are too many or too changing for a row of buttons. */
import { make, say } from './dom.js';
import { digits, glyph } from './glyphs.js';

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

/**
 * The token that is asked about after a position: the one that follows, or one of the likely ones.
 *
 * @param {() => void} chose
 */
export function tokenPicker(chose) {
  /** @type {number | null} */
  let token = null;
  const pick = picker((value) => {
    token = value === '' ? null : Number(value);
    chose();
  });
  return {
    element: pick.element,
    /** @returns {number | null} Its id; null for the one that follows, or after the last the likeliest. */
    get token() {
      return token;
    },
    /** Another text or position: the choice was not about it. */
    forget() {
      token = null;
    },
    /**
     * @param {string} name
     * @param {import('./types.js').Translate} translate
     * @param {import('./decode.js').Analysis} analysis
     * @param {number} position
     */
    show(name, translate, analysis, position) {
      const likely = analysis.next(position).map(({ id, probability }) => [String(id), `${glyph(analysis.piece(id))}  ${digits(probability)}`]);
      const options = [['', translate('terms_follows')], ...likely];
      if (token !== null && likely.every(([id]) => Number(id) !== token)) {
        options.push([String(token), glyph(analysis.piece(token))]);
      }
      pick.show(name, options, token === null ? '' : String(token));
    },
  };
}
