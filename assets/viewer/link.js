/**
 * The link that opens the page as it is: what it holds, how it is written and read. `minigpt/ui/links.py` decides what the
 * page can use of it.
 *
 * Everything stands behind the `#`, which no browser sends to a server and a Space hands on to the page inside it. Only
 * letters, digits and a few signs occur, and the last field is plain, so that a chat neither cuts nor changes it. What was
 * generated travels as token ids: the picture comes back as it was, whatever the engine draws by then; the seed and the
 * settings travel as well, so that Generate draws the same. A link can also be written by hand, behind `#` or `?`:
 * `?model=chapter&prompt=To be&layer=2&head=1`.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./decode.js').Analysis} Analysis
 *
 * @typedef {object} Field  One thing of the viewer's state that a link holds.
 * @property {string} name  In the address.
 * @property {(state: Readonly<State>) => string | number | null} write  null leaves it out.
 * @property {(value: string, analysis: Analysis) => Partial<State> | null} read  The change of the state; null if the value
 *   means nothing in this analysis.
 *
 * @typedef {Record<string, string | number>} Choice  The viewer's fields as they stand in a link.
 *
 * @typedef {object} Link
 * @property {Record<string, unknown>} page  What the page around the viewer opens with; empty without a link.
 * @property {Choice} choice  What the viewer opens with.
 * @property {string | null} language
 */
import { pack, toBytes, toNumbers, unpackWord } from './compact.js';
import { SCALES } from './scale.js';
import { NOTHING_YET } from './state.js';
import { TABS } from './tabs.js';
import { stepsOf } from './time.js';
import { VIEWS } from './views.js';
import { changeIn, wordOf } from './whatif.js';

const VERSION = '1';
/** Most characters of a text in a link, and most tokens after it. */
export const LONGEST_TEXT = 20_000;
const MOST_TOKENS = 500;
const LONGEST_LINK = 100_000;
const SETTINGS = /** @type {const} */ (['length', 'temperature', 'top_k', 'top_p', 'min_p', 'repetition_penalty', 'count', 'seed']);
/** The seed that stands for a fresh one. */
const FRESH = -1;

/**
 * @param {string} value
 * @param {number} from
 * @param {number} end
 * @returns {number | null} A whole number below `end`.
 */
export function wholeFrom(value, from, end) {
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  return number >= from && number < end ? number : null;
}

/** @type {Field[]} What of the viewer's state a link holds; whoever adds to the state adds a field here. */
export const FIELDS = [
  {
    name: 'layer',
    write: ({ layer }) => layer,
    read(value, { layers }) {
      const layer = wholeFrom(value, 0, layers);
      return layer === null ? null : { layer };
    },
  },
  {
    name: 'head',
    write: ({ head }) => head,
    read(value, { heads }) {
      const head = wholeFrom(value, 0, heads);
      return head === null ? null : { head };
    },
  },
  {
    name: 'token',
    write: ({ token }) => token,
    read(value, { start, end }) {
      const token = wholeFrom(value, start, end);
      return token === null ? null : { token };
    },
  },
  {
    name: 'step',
    write: ({ step }) => step,
    read(value, analysis) {
      const steps = stepsOf(analysis);
      const step = steps === null ? null : wholeFrom(value, steps.first, steps.last + 1);
      return step === null ? null : { step };
    },
  },
  {
    name: 'direction',
    write: ({ direction }) => direction,
    read: (value) => (value === 'to' || value === 'by' ? { direction: value } : null),
  },
  {
    name: 'scale',
    write: ({ scale }) => (scale === NOTHING_YET.scale ? null : scale),
    read(value) {
      const scale = SCALES.find((known) => known === value);
      return scale === undefined ? null : { scale };
    },
  },
  {
    name: 'range',
    write: ({ range }) => (range === NOTHING_YET.range ? null : range),
    read: (value) => (value === 'fixed' || value === 'head' ? { range: value } : null),
  },
  {
    name: 'mask',
    write: ({ maskFirst }) => (maskFirst ? 'first' : null),
    read: (value) => (value === 'first' ? { maskFirst: true } : null),
  },
  {
    name: 'view',
    write: ({ view }) => (view === 'raw' ? null : view),
    read(value) {
      const view = VIEWS.find((known) => known === value);
      return view === undefined ? null : { view };
    },
  },
  {
    name: 'badge',
    write: ({ analysis, badge }) => (badge?.source === 'text' && analysis?.scores.includes(badge.name) ? badge.name : null),
    read: (value, { scores }) => (scores.includes(value) ? { badge: { name: value, source: 'text', values: null } } : null),
  },
  {
    name: 'whatif',
    write: ({ whatIf }) => wordOf(whatIf),
    read(value, analysis) {
      const whatIf = changeIn(value, analysis);
      return whatIf === null ? null : { whatIf };
    },
  },
  {
    name: 'tab',
    write: ({ tab }) => tab,
    read: (value) => (TABS.some(({ name }) => name === value) ? { tab: value } : null),
  },
];

const NAMES = ['model', 'text', 'prompt', 'generated', 'lang', ...SETTINGS, ...FIELDS.map(({ name }) => name)];

/**
 * What a state holds of the fields.
 *
 * @param {Readonly<State>} state
 * @returns {Choice}
 */
export function choiceOf(state) {
  /** @type {Choice} */
  const choice = {};
  for (const { name, write } of FIELDS) {
    const value = write(state);
    if (value !== null) {
      choice[name] = value;
    }
  }
  return choice;
}

/**
 * The change that a choice makes to the state, and the names of what means nothing in this analysis.
 *
 * @param {Choice} choice
 * @param {Analysis} analysis
 * @returns {{patch: Partial<State>, refused: string[]}}
 */
export function chosenBy(choice, analysis) {
  /** @type {Partial<State>} */
  let patch = {};
  const refused = [];
  for (const { name, read } of FIELDS) {
    if (!Object.hasOwn(choice, name)) {
      continue;
    }
    const change = read(String(choice[name]), analysis);
    if (change === null) {
      refused.push(name);
    } else {
      patch = { ...patch, ...change };
    }
  }
  return { patch, refused };
}

/**
 * Write the link to what is on the page.
 *
 * @param {import('./page.js').Controls} controls
 * @param {Readonly<State>} state
 * @param {{models: string[], language: string | null, seed: number | null}} known The models that a link may name; the
 *   language if one was chosen; the seed that the generated text came from.
 * @returns {Promise<{address: string, left: string[]}>} What was left out: `model`, `text`.
 */
export async function writeLink(controls, state, { models, language, seed }) {
  const fields = new URLSearchParams();
  const left = [];
  const { whole } = state;
  const isPublic = models.includes(controls.model ?? '');
  if (isPublic) {
    fields.set('model', controls.model ?? '');
  } else {
    left.push('model');
  }
  const generated = whole === null ? [] : whole.text.slice(whole.promptLength);
  const text = controls.text ?? '';
  if (text.length > LONGEST_TEXT) {
    left.push('text');
  } else {
    fields.set('text', await pack(new TextEncoder().encode(text)));
    if (isPublic && generated.length > 0 && generated.length <= MOST_TOKENS) {
      fields.set('generated', await pack(toBytes(generated)));
    }
  }
  for (const name of SETTINGS) {
    const value = controls[name];
    const fresh = name === 'seed' && (value === null || value === FRESH);
    const written = fresh && generated.length > 0 ? seed : value;
    if (typeof written === 'number') {
      fields.set(name, String(written));
    }
  }
  // A head of one model means nothing in another.
  for (const [name, value] of isPublic ? Object.entries(choiceOf(state)) : []) {
    fields.set(name, String(value));
  }
  if (language !== null) {
    fields.set('lang', language);
  }
  fields.set('v', VERSION);
  return { address: `${location.origin}${location.pathname}#${fields}`, left };
}

/**
 * Read a link.
 *
 * @param {{hash: string, search: string}} address
 * @returns {Promise<Link>} With `page.broken` where it cannot be read.
 */
export async function readLink({ hash, search }) {
  const link = /** @type {Link} */ ({ page: {}, choice: {}, language: null });
  // A query may hold what others put there (a Space, a theme), so only a hash can be broken by what is not known.
  const fields = new URLSearchParams(hash.length > 1 ? hash.slice(1) : search);
  const known = NAMES.some((name) => fields.has(name));
  if (!known && hash.length <= 1) {
    return link;
  }
  const version = fields.get('v');
  const packed = fields.has('text') || fields.has('generated');
  if (!known || hash.length > LONGEST_LINK || (version !== VERSION && (version !== null || packed))) {
    return { ...link, page: { broken: true } };
  }
  try {
    await readPage(fields, link.page);
  } catch {
    return { ...link, page: { broken: true } };
  }
  for (const { name } of FIELDS) {
    const value = fields.get(name);
    if (value !== null) {
      link.choice[name] = value;
    }
  }
  return { ...link, language: fields.get('lang') };
}

/** @param {URLSearchParams} fields @param {Record<string, unknown>} page */
async function readPage(fields, page) {
  for (const name of ['model', ...SETTINGS]) {
    if (fields.has(name)) {
      page[name] = fields.get(name)?.slice(0, 200);
    }
  }
  const [prompt, text, generated] = ['prompt', 'text', 'generated'].map((name) => fields.get(name));
  if (prompt !== null) {
    page.text = prompt;
  }
  if (text !== null) {
    // A character takes at most three bytes of UTF-8 for each unit that `length` counts.
    page.text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await unpackWord(text, 3 * LONGEST_TEXT));
  }
  if (generated !== null) {
    page.generated = toNumbers(await unpackWord(generated, 5 * MOST_TOKENS));
  }
}

/** @type {Promise<Link> | null} */
let first = null;

/**
 * The link that this page was opened with.
 *
 * @returns {Promise<Link>}
 */
export function openedLink() {
  first ??= readLink(location);
  return first;
}
