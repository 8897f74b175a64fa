/**
 * A sentence from the server about what was typed, with the button that helps.
 *
 * @typedef {import('./types.js').Translate} Translate
 */
import { make, say } from './dom.js';

/**
 * @param {() => Translate} words
 * @param {(action: string) => void} act
 * @returns {import('./types.js').View}
 */
export function noticeView(words, act) {
  const text = make('p');
  const button = make('button', 'mg-action', { type: 'button' });
  const element = make('div', 'mg-notice', { role: 'status' });
  /** @type {string | null} */
  let action = null;
  button.addEventListener('click', () => {
    if (action !== null) {
      act(action);
    }
  });

  return {
    element,
    update({ notice, language }, changed) {
      if (!changed.has('notice') && !changed.has('language')) {
        return;
      }
      action = notice?.action ?? null;
      if (notice === null) {
        element.replaceChildren();
        return;
      }
      say(text, notice.sentences[language] ?? notice.sentences.en ?? notice.code);
      say(button, action === null ? '' : words()(`notice_${action}`));
      element.replaceChildren(...(action === null ? [text] : [text, button]));
    },
  };
}
