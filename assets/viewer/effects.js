/**
 * What a change does: the next token's probabilities before and after, how far every prediction moved, the loss on the text, and the text
 * going on from the same random numbers.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 *
 * @typedef {object} Effects  An answer about a change; rows are positions of the window.
 * @property {number[]} kl  Bits.
 * @property {[number | null, number | null]} loss
 * @property {number[][]} ids
 * @property {number[][]} before
 * @property {number[][]} after
 * @property {[number, number][]} following
 * @property {Record<string, string>} pieces
 *
 * @typedef {object} Two  An answer about two continuations.
 * @property {string[]} before
 * @property {string[]} after
 * @property {number | null} difference
 * @property {import('./types.js').Sampling} sampling
 */
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { barsView } from './bars.js';
import { currentBranch } from './branches.js';
import { settingsOf } from './choices.js';
import { signed } from './diverging.js';
import { make, mark, say, wordButton } from './dom.js';
import { digits, glyph, named } from './glyphs.js';
import { chosenToken } from './state.js';
import { changeOf, isChanged } from './whatif.js';

const COLUMNS = /** @type {const} */ (['token', 'before', 'after', 'change']);
const SHOWN = 8;

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function effectsView(tools) {
  const { store, words, host } = tools;
  const status = make('p', 'mg-status', { role: 'status' });
  const loss = make('p', 'mg-loss');
  const headings = COLUMNS.map(() => make('th', '', { scope: 'col' }));
  const caption = make('caption');
  const body = make('tbody');
  const table = make('table', 'mg-effects', {}, [caption, make('thead', '', {}, [make('tr', '', {}, headings)]), body]);
  const barsTitle = make('h3', 'mg-subtitle');
  const bars = barsView((index) => store.set({ token: index + (store.state.analysis?.start ?? 0) }));
  const found = make('div', 'mg-found', {}, [loss, table, barsTitle, bars.element]);
  const both = continuationsView(tools);
  const element = make('div', 'mg-effects-panel', {}, [status, found, both.element]);
  /** @type {Asking<Effects>} */
  const asking = new Asking(host, 'what_if', () => show(store.state));

  /** @param {Readonly<State>} state */
  function show(state) {
    const { analysis, whatIf, language } = state;
    const { value, notice, isWaiting } = asking;
    const translate = words();
    const changed = isChanged(whatIf);
    say(status, changed ? statusOf(translate, asking, language) : translate('whatif_nothing'));
    found.hidden = !changed || value === null || notice !== null;
    found.classList.toggle('mg-waits', isWaiting);
    if (analysis === null || value === null || found.hidden) {
      return;
    }
    const position = Math.min(chosenToken(state) ?? 0, analysis.start + value.kl.length - 1);
    const [before, after] = value.loss;
    const numbers = { before: before?.toFixed(4) ?? '–', after: after?.toFixed(4) ?? '–' };
    say(loss, before === null || after === null ? translate('whatif_no_loss') : translate('whatif_loss', { ...numbers, change: signed(after - before) }));
    say(caption, translate('whatif_table', { token: named(analysis.token(position), position) }));
    headings.forEach((heading, index) => say(heading, translate(`whatif_${COLUMNS[index]}`)));
    body.replaceChildren(...rowsOf(value, analysis, position, translate));
    say(barsTitle, translate('whatif_kl'));
    bars.show(translate('whatif_kl'), value.kl.map((bits, index) => {
      const place = analysis.start + index;
      const about = translate('whatif_kl_bar', { token: named(analysis.token(place), place), bits: bits.toFixed(3) });
      return { token: analysis.token(place), value: bits, about, chosen: place === position };
    }), (most) => translate('bars_most', { most }));
  }

  return {
    element,
    update(state, changed) {
      const { analysis, whatIf } = state;
      if (analysis !== null && isChanged(whatIf) && !isWriting(state)) {
        asking.ask(aboutOf(analysis), { change: changeOf(whatIf, analysis.start, analysis.end) });
      }
      show(state);
      both.update(state, changed);
    },
  };
}

/**
 * @param {Effects} value
 * @param {import('./decode.js').Analysis} analysis
 * @param {number} position
 * @param {Translate} translate
 */
function rowsOf(value, analysis, position, translate) {
  const place = position - analysis.start;
  const follows = place + 1 < analysis.length ? analysis.ids[place + 1] : null;
  const rows = value.ids[place].map((id, index) => ({ id, before: value.before[place][index], after: value.after[place][index] }));
  if (follows !== null && rows.every(({ id }) => id !== follows)) {
    rows.push({ id: follows, before: value.following[place][0], after: value.following[place][1] });
  }
  rows.sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
  const shown = rows.filter(({ id }, index) => index < SHOWN || id === follows);
  return shown.map(({ id, before, after }) => {
    const chip = make('span', 'mg-chip', {}, [glyph(value.pieces[id] ?? analysis.piece(id))]);
    const cells = [before, after].map((chance) => {
      const bar = make('span', 'mg-bar');
      bar.style.setProperty('--share', String(chance));
      return make('td', '', {}, [make('span', 'mg-cell-bar', {}, [bar]), make('span', 'mg-number', {}, [digits(chance)])]);
    });
    const change = make('td', after < before ? 'mg-less' : 'mg-more', {}, [make('span', 'mg-number', {}, [signed(after - before)])]);
    const name = make('th', '', { scope: 'row' }, [chip, ...(id === follows ? [make('span', 'mg-remark', {}, [translate('next_taken')])] : [])]);
    return make('tr', id === follows ? 'mg-taken' : '', {}, [name, ...cells, change]);
  });
}

/**
 * The prompt continued twice with the same random numbers.
 *
 * @param {Tools} tools
 * @returns {View}
 */
function continuationsView({ store, words, host }) {
  const start = wordButton('mg-step', () => ask());
  const note = make('p', 'mg-note');
  const titles = [make('h4'), make('h4')];
  const texts = [make('p', 'mg-text'), make('p', 'mg-text')];
  const sides = texts.map((text, index) => make('div', 'mg-side', {}, [titles[index], text]));
  const result = make('div', 'mg-sides', {}, sides);
  const element = make('div', 'mg-continued', {}, [start.element, note, result]);
  /** @type {Asking<Two>} */
  const asking = new Asking(host, 'continuations', () => show(store.state));
  /** @param {Readonly<State>} state */
  const questionOf = (state) => {
    const { whole, whatIf } = state;
    if (whole === null) {
      return null;
    }
    const end = Math.max(1, whole.promptLength);
    const first = Math.max(0, end - whole.checkpoint.block_size);
    const given = whole.promptLength === 0 ? [] : whole.text.slice(first, end);
    // A prompt without tokens begins with the token of id 0, as `generate` does.
    const ids = given.length === 0 ? [0] : given;
    const options = { change: changeOf(whatIf, first), length: 40, sampling: currentBranch(state)?.sampling ?? null };
    return { about: { model: whole.checkpoint.name, ids }, options };
  };

  function ask() {
    const question = questionOf(store.state);
    if (question !== null) {
      asking.ask(question.about, question.options);
      show(store.state);
    }
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const translate = words();
    const question = questionOf(state);
    // Another text or change makes the answer stale.
    const isCurrent = question !== null && asking.isFor(question.about, question.options);
    element.hidden = !isChanged(state.whatIf);
    start.name(translate('whatif_continue'));
    const { heads, mode } = state.whatIf;
    const ofMean = mode === 'mean' && heads.length > 0 ? ` ${translate('whatif_continue_mean')}` : '';
    const { value } = asking;
    result.hidden = !isCurrent || value === null || asking.isWaiting;
    if (!isCurrent || value === null || result.hidden) {
      say(note, isCurrent ? statusOf(translate, asking, state.language) : `${translate('whatif_continue_about')}${ofMean}`);
      return;
    }
    const settings = settingsOf(translate, value.sampling);
    const said = translate('whatif_continued', { settings, seed: value.sampling.seed, count: value.before.length });
    say(note, `${said} ${translate(value.difference === null ? 'whatif_same' : 'whatif_differs', { index: (value.difference ?? 0) + 1 })}${ofMean}`);
    [value.before, value.after].forEach((tokens, side) => {
      say(titles[side], translate(side === 0 ? 'whatif_before' : 'whatif_after'));
      texts[side].replaceChildren(...tokens.map((token, index) => {
        const mine = make('span', index === value.difference ? 'mg-first-difference' : '', {}, [token === '\n' ? '⏎\n' : token]);
        if (index === value.difference) {
          mark(mine, 'title', translate('branch_difference'));
        }
        return mine;
      }));
    });
  }

  return { element, update: (state) => show(state) };
}
