/**
 * The tab "Model": the text on its way through the model, what its parts weigh, what dropout does to a head's weights, and the common
 * mistakes with what is said to them. One of them at a time, and only that one asks.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 * @typedef {import('./unpack.js').Numbers} Numbers
 *
 * @typedef {object} Counts  How many parameters each part has.
 * @property {Record<string, number>} own
 * @property {Record<string, Record<string, number>>} layers  By the number of layers.
 * @property {number} n_layer
 * @property {string} kind
 * @property {boolean} tied
 *
 * @typedef {object} Dropped
 * @property {number} layer
 * @property {number} head
 * @property {number} own  The dropout of this model's settings.
 * @property {number | null} trained  What its training dropped of attention weights, where that was another share.
 * @property {number} dropout
 * @property {number} seed
 * @property {number} first  The first token of the window that is drawn.
 * @property {number} dropped
 * @property {number} cells
 * @property {number} sum_low
 * @property {number} sum_high
 * @property {Parameters<typeof import('./unpack.js').picturesOf>[0]} pictures
 *
 * @typedef {Record<string, {code: string, error: string | null, said: Record<string, string>}>} Mistakes
 */
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { chooser } from './chooser.js';
import { make, mark, say, wordButton } from './dom.js';
import { cellOf, flowView } from './flow.js';
import { picker } from './picker.js';
import { smallPicture } from './smallpicture.js';
import { chosenToken } from './state.js';
import { picturesOf } from './unpack.js';

const PARTS = /** @type {const} */ (['flow', 'parameters', 'dropout', 'mistakes']);
/** What a model without dropout is shown with at first, and what else can be chosen. */
const USUAL = 0.2;
const SHARES = [0.1, 0.2, 0.3, 0.5];
const LARGE = 300;

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function modelTab(tools) {
  const { store, words } = tools;
  const views = { flow: flowView(tools), parameters: parametersView(tools), dropout: dropoutView(tools), mistakes: mistakesView(tools) };
  /** @type {typeof PARTS[number]} */
  let part = 'flow';
  const choice = chooser(PARTS, (name) => {
    part = name;
    show(store.state, new Set());
  });
  const element = make('div', 'mg-swept mg-model', {}, [make('div', 'mg-inline', {}, [choice.element]), ...Object.values(views).map((view) => view.element)]);

  /** @param {State} state @param {Set<keyof State>} changed */
  function show(state, changed) {
    choice.name(words()('model_parts'), (name) => words()(`model_${name}`));
    choice.show(part);
    for (const name of PARTS) {
      views[name].element.hidden = name !== part;
    }
    views[part].update(state, changed);
  }

  return { element, update: show };
}

/**
 * @param {Tools} tools
 * @returns {View}
 */
function parametersView({ store, words, host }) {
  const status = make('p', 'mg-status', { role: 'status' });
  const about = make('p', 'mg-hint');
  const table = make('table', 'mg-head-table mg-counts');
  const scroller = make('div', 'mg-scroll', { tabindex: '0', role: 'region' }, [table]);
  const element = make('div', 'mg-swept', {}, [about, status, scroller]);
  /** @type {Asking<Counts>} */
  const asking = new Asking(host, 'parameters', () => show(store.state));

  /** @param {Readonly<State>} state */
  function show({ analysis, language }) {
    const translate = words();
    const { value } = asking;
    say(status, statusOf(translate, asking, language));
    scroller.hidden = value === null;
    if (analysis === null || value === null) {
      return;
    }
    const { n_embd: width, block_size: block, vocab_size: vocab, n_head: heads } = analysis.checkpoint;
    const notes = [translate('parameters_about', { width, block, vocab, heads }), ...(value.tied ? [translate('parameters_tied')] : []), ...(value.kind === 'transformer' ? [] : [translate('parameters_kind')])];
    say(about, notes.join(' '));
    mark(scroller, 'aria-label', translate('parameters_table'));
    mark(table, 'aria-label', translate('parameters_table'));
    table.replaceChildren(...countRows(value, translate));
  }

  return {
    element,
    update(state) {
      if (state.analysis !== null) {
        // Nothing depends on the text.
        asking.ask({ ...aboutOf(state.analysis), ids: [0] }, {});
      }
      show(state);
    },
  };
}

/** @param {Record<string, number>} counts */
const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/** @param {number} count */
const grouped = (count) => count.toLocaleString('en');

/** @param {Counts} value @param {Translate} translate */
function countRows({ own, layers, n_layer: depth }, translate) {
  const counts = Object.keys(layers);
  const right = { scope: 'col' };
  const headings = [translate('parameters_own', { layers: depth }), translate('parameters_share'), ...counts.map((layer) => translate('parameters_layers', { layers: layer }))];
  const head = make('tr', '', {}, [make('th', '', right, [translate('parameters_part')]), ...headings.map((heading) => make('th', 'mg-right', right, [heading]))]);
  /** @param {string} name @param {(from: Record<string, number>) => number} count @param {string} className */
  const row = (name, count, className) => {
    const share = count(own) / total(own);
    const shared = make('td', 'mg-right mg-shaded', {}, [`${(share * 100).toFixed(1)} %`]);
    shared.style.setProperty('--share', String(share));
    return make('tr', className, {}, [
      make('th', '', { scope: 'row' }, [name]),
      make('td', 'mg-right mg-number', {}, [grouped(count(own))]),
      shared,
      ...counts.map((layer) => make('td', 'mg-right mg-number', {}, [grouped(count(layers[layer]))])),
    ]);
  };
  const body = Object.keys(own).map((name) => row(translate(`parameters_${name}`), (from) => from[name], ''));
  return [make('thead', '', {}, [head]), make('tbody', '', {}, [...body, row(translate('parameters_total'), total, 'mg-counts-total')])];
}

/**
 * @param {Tools} tools
 * @returns {View}
 */
function dropoutView({ store, words, host }) {
  let isOn = true;
  let seed = 0;
  /** @type {number | null} The share that is dropped; null for the model's own. */
  let share = null;
  /** @type {number | null} The model's own share, once it is known. */
  let own = null;
  let model = '';
  const input = make('input', '', { type: 'checkbox' });
  const word = make('span');
  const toggle = make('label', 'mg-check', {}, [input, word]);
  input.checked = isOn;
  input.addEventListener('change', () => {
    isOn = input.checked;
    follow(store.state);
  });
  const pick = picker((value) => {
    share = Number(value);
    follow(store.state);
  });
  const again = wordButton('mg-step', () => {
    seed += 1;
    follow(store.state);
  });
  const about = make('p', 'mg-hint');
  const status = make('p', 'mg-status', { role: 'status' });
  const reading = make('p', 'mg-reading', { 'aria-live': 'polite' });
  /** @param {import('./smallpicture.js').Place | null} place */
  const look = (place) => {
    const { analysis } = store.state;
    const first = asking.value?.first ?? 0;
    const shifted = place === null ? null : { ...place, tokens: moved(place.tokens, first), columns: moved(place.columns, first) };
    say(reading, shifted === null || analysis === null ? '' : cellOf(shifted, 'T', analysis, words()));
  };
  const choose = (/** @type {number} */ token) => store.set({ token: token + (asking.value?.first ?? 0) + (store.state.analysis?.start ?? 0) });
  const sides = ['before', 'after'].map(() => {
    const picture = smallPicture(look, choose, LARGE);
    const title = make('h3', 'mg-subtitle');
    const said = make('p', 'mg-hint');
    return { picture, title, said, element: make('div', 'mg-swept', {}, [title, picture.element, said]) };
  });
  const found = make('div', 'mg-compared mg-dropped', {}, sides.map((side) => side.element));
  const element = make('div', 'mg-swept', {}, [about, make('div', 'mg-inline', {}, [toggle, pick.element, again.element]), status, found, reading]);
  /** @type {Asking<Dropped>} */
  const asking = new Asking(host, 'dropout', () => {
    const { value } = asking;
    own = value === null ? own : value.own;
    // A model without dropout is asked about again, with a share that is not its own.
    (value === null ? show : follow)(store.state);
  });
  /** @type {Dropped | null} */
  let unpacked = null;
  /** @type {Record<string, Numbers> | null} */
  let pictures = null;

  /** @param {Readonly<State>} state */
  function follow(state) {
    const { analysis, layer, head } = state;
    if (analysis !== null && !isWriting(state)) {
      if (analysis.checkpoint.name !== model) {
        [model, own, share] = [analysis.checkpoint.name, null, null];
      }
      const wanted = share ?? (own === 0 ? USUAL : null);
      asking.ask(aboutOf(analysis), { layer, head, seed, ...(wanted === null ? {} : { dropout: wanted }) });
    }
    show(state);
  }

  /** @param {Dropped} value */
  function unpack(value) {
    unpacked = value;
    void picturesOf(value.pictures).then((numbers) => {
      if (unpacked === value) {
        pictures = numbers;
        show(store.state);
      }
    });
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const translate = words();
    const { value } = asking;
    const trained = value?.trained ?? null;
    say(about, translate('dropout_about') + (trained === null ? '' : ` ${translate('dropout_trained', { p: trained })}`));
    say(word, translate('dropout_switch'));
    again.name(translate('dropout_again'));
    say(status, statusOf(translate, asking, state.language));
    if (value !== null && value !== unpacked) {
      unpack(value);
    }
    found.hidden = value === null || pictures === null;
    again.element.hidden = !isOn;
    pick.element.hidden = value === null || !isOn;
    if (value !== null && pictures !== null) {
      draw(state, value, pictures, translate);
    }
  }

  /** @param {Readonly<State>} state @param {Dropped} value @param {Record<string, Numbers>} numbers @param {Translate} translate */
  function draw(state, value, numbers, translate) {
    const name = `L${value.layer}H${value.head}`;
    const others = SHARES.filter((each) => each !== value.own).map((each) => [String(each), translate('dropout_other', { p: each })]);
    const owns = value.own > 0 ? [[String(value.own), translate('dropout_own', { p: value.own })]] : [];
    pick.show(translate(value.own > 0 ? 'dropout_share' : 'dropout_share_none'), [...owns, ...others], String(value.dropout));
    const tokens = numbers.before.rows;
    const token = chosenToken(state);
    const start = (state.analysis?.start ?? 0) + value.first;
    const titles = [translate('dropout_before', { name }), translate('dropout_after', { name, p: value.dropout, draw: value.seed + 1 })];
    const factor = (1 / (1 - value.dropout)).toFixed(3);
    const rows = { low: value.sum_low.toFixed(2), high: value.sum_high.toFixed(2) };
    const said = [translate('dropout_before_sums'), translate('dropout_after_sums', { ...rows, factor, dropped: value.dropped, cells: value.cells })];
    ['before', 'after'].forEach((which, index) => {
      const { picture, title, said: line, element: side } = sides[index];
      side.hidden = which === 'after' && !isOn;
      say(title, titles[index]);
      say(line, said[index]);
      picture.show({ numbers: numbers[which], tokens, across: tokens, kind: 'weights', theme: state.theme, label: titles[index], before: numbers.before });
      picture.point(token === null || token < start ? null : token - start);
    });
    found.classList.toggle('mg-waits', asking.isWaiting);
    mark(found, 'data-shown', `${value.layer}:${value.head}:${value.dropout}:${value.seed}`);
  }

  return { element, update: (state) => follow(state) };
}

/** @param {[number, number]} range @param {number} by @returns {[number, number]} */
const moved = ([from, to], by) => [from + by, to + by];

/**
 * @param {Tools} tools
 * @returns {View}
 */
function mistakesView({ store, words, host }) {
  const about = make('p', 'mg-hint');
  const status = make('p', 'mg-status', { role: 'status' });
  const list = make('div', 'mg-mistakes');
  const element = make('div', 'mg-swept', {}, [about, status, list]);
  /** @type {Asking<Mistakes>} */
  const asking = new Asking(host, 'mistakes', () => show(store.state));
  let built = '';

  /** @param {Readonly<State>} state */
  function show({ language }) {
    const translate = words();
    const { value } = asking;
    say(about, translate('mistakes_about'));
    say(status, statusOf(translate, asking, language));
    list.hidden = value === null;
    if (value === null || built === language) {
      return;
    }
    built = language;
    const open = new Set(Array.from(list.querySelectorAll('details[open]'), (each) => /** @type {HTMLElement} */ (each).dataset.mistake));
    list.replaceChildren(...Object.entries(value).map(([name, { code, error, said }]) => {
      const title = translate(`mistake_${name}`);
      const details = make('details', 'mg-mistake', { 'data-mistake': name }, [
        make('summary', '', {}, [title]),
        make('pre', 'mg-text', { tabindex: '0', role: 'region', 'aria-label': translate('mistakes_code', { title }) }, [code]),
        make('p', 'mg-mistake-said', {}, [make('strong', '', {}, [error ?? translate('mistakes_no_error')]), make('span', '', {}, [said[language]])]),
        make('p', '', {}, [translate(`mistake_${name}_way`)]),
      ]);
      details.open = open.has(name);
      return details;
    }));
  }

  return {
    element,
    update(state) {
      if (state.analysis !== null) {
        // Nothing depends on the text or the model.
        if (asking.value === null && !asking.isWaiting) {
          asking.ask({ ...aboutOf(state.analysis), ids: [0] }, {});
        }
      }
      show(state);
    },
  };
}
