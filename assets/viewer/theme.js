/**
 * Light or dark, as the page around the viewer is now.
 *
 * @typedef {import('./types.js').Theme} Theme
 */

/** @returns {Theme} */
export function currentTheme() {
  return document.body.classList.contains('dark') ? 'dark' : 'light';
}

/**
 * Tell each time the page turns light or dark.
 *
 * @param {(theme: Theme) => void} tell
 */
export function followTheme(tell) {
  const observer = new MutationObserver(() => tell(currentTheme()));
  observer.observe(document.body, { attributes: true, attributeFilter: ['class'] });
}
