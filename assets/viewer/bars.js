/**
 * One bar for each of a row of tokens, up for what is positive and down for what is negative; a click chooses. Long rows scroll.
 *
 * @typedef {object} Bar
 * @property {string} token  Shown below, cut to what fits.
 * @property {number | null} value  null where there is none.
 * @property {string} about  A sentence on it, shown under the pointer.
 * @property {boolean} [chosen]
 * @property {boolean} [off]  Crossed out.
 */
import { make, mark, say } from './dom.js';
import { shortGlyph } from './glyphs.js';
import { largest } from './diverging.js';

/**
 * @param {(index: number) => void} choose
 */
export function barsView(choose) {
  const row = make('div', 'mg-bars-row');
  const scroller = make('div', 'mg-bars', { role: 'group', tabindex: '0' }, [row]);
  const scale = make('p', 'mg-note');
  const element = make('div', 'mg-bars-frame', {}, [scroller, scale]);
  row.addEventListener('click', (event) => {
    const bar = event.target instanceof Element ? event.target.closest('.mg-bars-bar') : null;
    if (bar !== null) {
      choose(Array.from(row.children).indexOf(bar));
    }
  });
  scroller.addEventListener('keydown', (event) => {
    const here = Array.from(row.children).indexOf(/** @type {Element} */ (document.activeElement));
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const next = step === undefined ? null : row.children[Math.max(0, here + step)];
    if (next instanceof HTMLElement) {
      event.preventDefault();
      next.focus();
    }
  });
  return {
    element,
    /** @param {string} name @param {Bar[]} bars @param {(most: string) => string} scaled Says what the tallest bar stands for. */
    show(name, bars, scaled) {
      mark(scroller, 'aria-label', name);
      const most = largest(bars.map(({ value }) => value));
      say(scale, scaled(most < 0.001 ? most.toExponential(1) : most.toFixed(3)));
      row.classList.toggle('mg-signed', bars.some(({ value }) => (value ?? 0) < 0));
      while (row.children.length > bars.length) {
        row.lastElementChild?.remove();
      }
      while (row.children.length < bars.length) {
        row.append(make('button', 'mg-bars-bar', { type: 'button', tabindex: '-1' }, [make('i'), make('span', 'mg-bars-token')]));
      }
      bars.forEach(({ token, value, about, chosen = false, off = false }, index) => {
        const bar = /** @type {HTMLElement} */ (row.children[index]);
        const [stroke, label] = /** @type {HTMLElement[]} */ (Array.from(bar.children));
        stroke.style.setProperty('--size', String(Math.abs(value ?? 0) / most));
        stroke.className = (value ?? 0) < 0 ? 'mg-down' : 'mg-up';
        say(label, shortGlyph(token, 6));
        mark(bar, 'title', about);
        mark(bar, 'aria-label', about);
        mark(bar, 'aria-pressed', String(chosen || off));
        bar.classList.toggle('mg-chosen', chosen);
        bar.classList.toggle('mg-off', off);
      });
    },
  };
}
