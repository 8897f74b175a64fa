/**
 * Single cells of attention switched off: which keys the chosen query may not look at in the chosen head.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./state.js').Store} Store
 */
import { chooser } from './chooser.js';
import { make, mark, say } from './dom.js';
import { digits, glyph, named } from './glyphs.js';
import { chosenToken } from './state.js';
import { includes, MOST_EDGES, toggled } from './whatif.js';

/** The strongest keys that are offered. */
const OFFERED = 6;
const RESTS = /** @type {const} */ (['renormalise', 'keep']);

/**
 * Hide a key from the chosen query of the chosen head, or show it again.
 *
 * @param {Store} store
 * @param {number} key True position.
 */
export function toggleKey(store, key) {
  const { whatIf, layer, head } = store.state;
  const query = chosenToken(store.state);
  /** @type {[number, number, number, number][]} */
  const edges = query === null || key > query ? whatIf.edges : toggled(whatIf.edges, /** @type {[number, number, number, number]} */ ([layer, head, query, key]));
  if (edges.length <= MOST_EDGES) {
    store.set({ whatIf: { ...whatIf, edges } });
  }
}

/**
 * @param {Store} store
 * @param {() => Translate} words
 * @returns {View}
 */
export function hideKeys(store, words) {
  const title = make('h3', 'mg-subtitle');
  const keys = make('div', 'mg-keys-offered', { role: 'group' });
  const label = make('span');
  const field = make('input', 'mg-field', { type: 'number', step: '1' });
  const hide = make('button', 'mg-step', { type: 'submit' });
  const form = make('form', 'mg-inline', {}, [make('label', 'mg-inline', {}, [label, field]), hide]);
  const rest = chooser(RESTS, (value) => store.set({ whatIf: { ...store.state.whatIf, renormalise: value === 'renormalise' } }));
  const hidden = make('ul', 'mg-hidden-keys');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (field.value !== '' && field.reportValidity()) {
      toggleKey(store, Number(field.value));
    }
  });
  const element = make('div', 'mg-hide', {}, [title, keys, form, rest.element, hidden]);

  /** @param {number} key @param {string} text @param {string} name @param {boolean} off */
  function keyButton(key, text, name, off) {
    const button = make('button', 'mg-key-off', { type: 'button', 'aria-pressed': String(off), 'aria-label': name, title: name }, [text]);
    button.addEventListener('click', () => toggleKey(store, key));
    return button;
  }

  /** @param {Readonly<State>} state */
  function offer({ analysis, layer, head, whatIf }, /** @type {number} */ query) {
    const row = analysis?.head(layer, head)?.row(query - analysis.start) ?? null;
    if (analysis === null || row === null) {
      return [];
    }
    const { start } = analysis;
    const strongest = Array.from(row, (weight, index) => ({ weight, key: start + index })).sort((a, b) => b.weight - a.weight).slice(0, OFFERED);
    return strongest.map(({ weight, key }) => {
      const off = includes(whatIf.edges, [layer, head, query, key]);
      const text = `${glyph(analysis.token(key))} ${digits(weight)}`;
      return keyButton(key, text, words()('whatif_hide_key', { key: named(analysis.token(key), key), weight: digits(weight) }), off);
    });
  }

  return {
    element,
    update(state) {
      const { analysis, layer, head, whatIf } = state;
      const query = chosenToken(state);
      if (analysis === null || query === null) {
        return;
      }
      const translate = words();
      const token = named(analysis.token(query), query);
      say(title, translate('whatif_hide', { name: `L${layer}H${head}`, query: token }));
      mark(keys, 'aria-label', translate('whatif_hide', { name: `L${layer}H${head}`, query: token }));
      say(label, translate('whatif_key'));
      say(hide, translate('whatif_hide_button'));
      mark(field, 'min', String(analysis.start));
      mark(field, 'max', String(query));
      rest.name(translate('whatif_rest'), (value) => translate(`whatif_rest_${value}`));
      rest.show(whatIf.renormalise ? 'renormalise' : 'keep');
      // A pressed button keeps the focus when the row is written anew.
      const focused = Array.from(keys.children).indexOf(/** @type {Element} */ (document.activeElement));
      keys.replaceChildren(...offer(state, query));
      if (focused >= 0) {
        /** @type {HTMLElement | undefined} */ (keys.children[focused])?.focus();
      }
      hidden.replaceChildren(...whatIf.edges.map((edge) => hiddenKey(state, edge)));
    },
  };

  /** @param {Readonly<State>} state @param {[number, number, number, number]} edge */
  function hiddenKey({ analysis, whatIf }, edge) {
    const [layer, head, query, key] = edge;
    const tokens = [query, key].map((place) =>
      (analysis !== null && place >= analysis.start && place < analysis.end ? named(analysis.token(place), place) : `(${place})`));
    const text = words()('whatif_hidden', { name: `L${layer}H${head}`, query: tokens[0], key: tokens[1] });
    const show = make('button', 'mg-step', { type: 'button', 'aria-label': `${words()('whatif_show_again')}: ${text}` }, ['×']);
    show.addEventListener('click', () => store.set({ whatIf: { ...whatIf, edges: toggled(whatIf.edges, edge) } }));
    return make('li', '', {}, [text, ' ', show]);
  }
}
