/**
 * The page around the viewer in the viewer's language: title, document language, skip link, and what Gradio writes itself.
 *
 * @typedef {import('./types.js').Language} Language
 * @typedef {import('./types.js').Translate} Translate
 */
import { make, mark, say } from './dom.js';

/** The module of Gradio that holds the language of its own words. */
const GRADIO_CORE = /\/assets\/core-[\w-]+\.js$/;

/**
 * @param {() => Translate} words
 * @param {HTMLElement} target Where the skip link leads.
 * @returns {import('./types.js').View}
 */
export function surroundings(words, target) {
  const skip = make('a', 'mg-skip', { href: `#${target.id}` });
  skip.addEventListener('click', (event) => {
    // The address stays as it is.
    event.preventDefault();
    target.focus();
    target.scrollIntoView({ block: 'start' });
  });
  (document.querySelector('.gradio-container') ?? document.body).prepend(skip);

  return {
    element: skip,
    update({ language }, changed) {
      if (!changed.has('language')) {
        return;
      }
      document.documentElement.lang = language;
      document.title = words()('title');
      say(skip, words()('skip'));
      const footer = document.querySelector('footer[aria-label]');
      if (footer !== null) {
        mark(footer, 'aria-label', words()('footer'));
      }
      void speakGradio(language);
    },
  };
}

/**
 * Switch the words that Gradio writes itself. It has no public way for that; should this one be gone one day, those few words
 * stay in the browser's language.
 *
 * @param {Language} language
 */
async function speakGradio(language) {
  const core = performance.getEntriesByType('resource').find(({ name }) => GRADIO_CORE.test(name));
  if (core === undefined) {
    return;
  }
  /** @type {{changeLocale?: (language: string) => void}} */
  const { changeLocale } = await import(core.name);
  changeLocale?.(language);
}
