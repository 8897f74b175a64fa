/**
 * The page that one analysis was exported as: the same viewer, without a server.
 *
 * @typedef {import('./types.js').Language} Language
 */
import { make, mark, say } from './dom.js';
import { build } from './main.js';
import { translator } from './words.js';

/** @type {[Language, string][]} Each under its own name. */
const LANGUAGES = [
  ['ko', '한국어'],
  ['en', 'English'],
];

/**
 * @param {HTMLElement} element
 * @param {{message: any, words: Record<string, Record<string, string>>, language: Language,
 *   choice: import('./link.js').Choice}} data
 */
export async function open(element, { message, words, language, choice }) {
  followSystem();
  /** @type {Record<string, () => void>} */
  const watchers = {};
  const props = { value: message, words, language, models: [message.checkpoint.name], offline: true };
  const title = make('h1', 'mg-offline-title');
  const about = make('p', 'mg-offline-about');
  const buttons = LANGUAGES.map(([, name]) => make('button', '', { type: 'button' }, [name]));
  const place = make('div');
  const [, ...subject] = document.title.split(' · ');

  function speak() {
    const word = translator(words, props.language);
    document.title = [word('offline_title'), ...subject].join(' · ');
    document.documentElement.lang = props.language;
    say(title, word('offline_title'));
    const { name, n_layer, n_head, block_size } = message.checkpoint;
    say(about, word('offline_about', { name, n_layer, n_head, block_size }));
    LANGUAGES.forEach(([key], index) => mark(buttons[index], 'aria-pressed', String(key === props.language)));
  }

  LANGUAGES.forEach(([key], index) =>
    buttons[index].addEventListener('click', () => {
      props.language = key;
      watchers.language();
      speak();
    }),
  );
  const switcher = make('div', 'mg-offline-languages', {}, buttons);
  element.append(make('header', 'mg-offline-top', {}, [make('div', '', {}, [title, about]), switcher]), place);
  const host = {
    props,
    trigger() {},
    /** @param {string | string[]} name @param {() => void} callback */
    watch(name, callback) {
      watchers[String(name)] = callback;
    },
    server: {},
  };
  await build(place, host, choice);
  speak();
}

/** Be dark where the system is. */
function followSystem() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = () => void document.body.classList.toggle('dark', dark.matches);
  dark.addEventListener('change', follow);
  follow();
}
