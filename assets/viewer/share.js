/**
 * The button that copies the link to what is on the page, and what is said about links.
 *
 * The values of the page's own controls are asked for with the event `copy_link` and arrive a moment later.
 *
 * @typedef {import('./types.js').Remark} Remark
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./page.js').Controls} Controls
 */
import { make, mark, say } from './dom.js';
import { LONGEST_TEXT, writeLink } from './link.js';
import { chosenLanguage, followCopying } from './page.js';

/** Some chats cut addresses that are longer. */
const LONG = 2000;

/**
 * @param {import('./state.js').Store} store
 * @param {() => Translate} words
 * @param {import('./types.js').Host} host
 * @returns {{button: HTMLElement, view: import('./types.js').View}}
 */
export function shareView(store, words, host) {
  const button = make('button', 'mg-small', { type: 'button' });
  button.hidden = host.props.offline === true;
  const status = make('div', 'mg-remarks', { role: 'status' });
  const field = make('input', 'mg-address', { type: 'text', readonly: '' });
  const close = make('button', 'mg-small mg-close', { type: 'button' }, ['×']);
  const element = make('div', 'mg-share', {}, [status, field, close]);
  /** @type {number | null} The seed of the text that was generated last. */
  let seed = null;
  button.addEventListener('click', () => {
    // So that the same sentence is heard again.
    store.set({ remarks: [] });
    host.trigger('copy_link');
  });
  close.addEventListener('click', () => {
    store.set({ remarks: [] });
    button.focus();
  });
  field.addEventListener('focus', () => field.select());
  followCopying((controls) => {
    const known = { models: host.props.models ?? [], language: chosenLanguage(), seed };
    void copyLink(controls, store.state, known, field).then((remarks) => {
      store.set({ remarks });
      if (remarks[0].address !== undefined) {
        field.focus();
      }
    });
  });

  return {
    button,
    view: {
      element,
      update(state, changed) {
        seed = state.stream?.seed ?? seed;
        if (changed.has('language')) {
          say(button, words()('link_copy'));
          mark(close, 'aria-label', words()('link_close'));
          mark(field, 'aria-label', words()('link_address'));
        }
        if (changed.has('language') || changed.has('remarks')) {
          const { remarks, language } = state;
          const address = remarks.find((remark) => remark.address !== undefined)?.address ?? '';
          say(status, remarks.map((remark) => sentenceOf(remark, words(), language)).join(' '));
          field.value = address;
          field.hidden = address === '';
          close.hidden = remarks.length === 0;
          element.classList.toggle('mg-quiet', remarks.length === 0);
        }
      },
    },
  };
}

/** @param {Remark} remark @param {Translate} words @param {string} language @returns {string} */
function sentenceOf({ key, values, sentences }, words, language) {
  return key === undefined ? (sentences?.[language] ?? sentences?.en ?? '') : words(key, values);
}

/**
 * Copy the link, and say how it went.
 *
 * @param {Controls} controls
 * @param {Readonly<State>} state
 * @param {Parameters<typeof writeLink>[2]} known
 * @param {HTMLInputElement} field Where it stands if nothing else helps.
 * @returns {Promise<Remark[]>}
 */
async function copyLink(controls, state, known, field) {
  const { address, left } = await writeLink(controls, state, known);
  const copied = await toClipboard(address, field);
  // A reload opens what was copied last, and an address bar that can be seen shows it.
  history.replaceState(history.state, '', address);
  /** @type {Remark[]} */
  const remarks = copied ? [{ key: 'link_copied' }] : [{ key: 'link_by_hand', address }];
  for (const what of left) {
    remarks.push({ key: `link_without_${what}`, values: { most: LONGEST_TEXT } });
  }
  if (address.length > LONG) {
    remarks.push({ key: 'link_long', values: { length: address.length } });
  }
  return remarks;
}

/**
 * @param {string} text
 * @param {HTMLInputElement} field
 * @returns {Promise<boolean>} Whether the text is in the clipboard now.
 */
async function toClipboard(text, field) {
  try {
    if (isForbidden()) {
      throw new DOMException('The page around this frame does not allow it.');
    }
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Inside a frame, or without https, the older way may still be open.
    const before = document.activeElement;
    field.hidden = false;
    field.value = text;
    field.select();
    const copied = document.execCommand('copy');
    if (copied && before instanceof HTMLElement) {
      before.focus();
    }
    return copied;
  }
}

/** @returns {boolean} Whether the page around this frame keeps it from the clipboard; browsers complain of a try. */
function isForbidden() {
  const { featurePolicy } = /** @type {{featurePolicy?: {allowsFeature(name: string): boolean}}} */ (
    /** @type {unknown} */ (document)
  );
  return featurePolicy?.allowsFeature('clipboard-write') === false;
}
