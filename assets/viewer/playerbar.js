/** Buttons for one step each way and for a replay, beside a slider: how anything that has steps is walked through. */
import { make, mark, say } from './dom.js';

/** What the buttons show, in their order. */
const SIGNS = { first: '⇤', back: '←', play: '▶', forward: '→', last: '⇥' };
const PAUSE = '❚❚';

/**
 * @param {Record<keyof typeof SIGNS, () => void>} acts
 * @param {(value: number) => void} moved Called with the slider's value.
 */
export function playerBar(acts, moved) {
  const names = /** @type {(keyof typeof SIGNS)[]} */ (Object.keys(SIGNS));
  const buttons = names.map((name) => make('button', `mg-step mg-time-${name}`, { type: 'button' }, [SIGNS[name]]));
  const slider = make('input', 'mg-slider', { type: 'range', step: '1', min: '0' });
  const said = make('p', 'mg-said', { 'aria-live': 'polite' });
  const track = make('div', 'mg-track', {}, [make('div', 'mg-player', { role: 'group' }, buttons), slider]);
  buttons.forEach((button, place) => button.addEventListener('click', () => acts[names[place]]()));
  slider.addEventListener('input', () => moved(Number(slider.value)));

  return {
    /** @type {HTMLElement[]} The bar, and the line below it. */
    elements: [track, said],
    /** @param {string} sentence What stands below. */
    say: (sentence) => say(said, sentence),
    /** @param {(key: string) => string} named Of `slider` and each button, `pause` among them. @param {boolean} playing */
    label(named, playing) {
      mark(slider, 'aria-label', named('slider'));
      buttons.forEach((button, place) => {
        const key = names[place] === 'play' && playing ? 'pause' : names[place];
        say(button, key === 'pause' ? PAUSE : SIGNS[names[place]]);
        mark(button, 'aria-label', named(key));
        mark(button, 'title', named(key));
      });
    },
    /** @param {number} first @param {number} last The slider's ends. */
    reach(first, last) {
      mark(slider, 'min', String(first));
      mark(slider, 'max', String(last));
    },
    /** @param {number} value @param {string} spoken The value in words. @param {Partial<Record<keyof typeof SIGNS, boolean>>} ends Buttons that lead nowhere. */
    show(value, spoken, ends) {
      slider.value = String(value);
      mark(slider, 'aria-valuetext', spoken);
      buttons.forEach((button, place) => (button.disabled = ends[names[place]] ?? false));
    },
  };
}
