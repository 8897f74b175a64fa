/**
 * What the token of a step was chosen from: its probabilities by the model itself and after temperature, top-k and top-p, side by
 * side, the token that was taken, and for every other one a button that continues from it.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').Sampling} Sampling
 * @typedef {import('./steps.js').Choice} Choice
 * @typedef {import('./steps.js').Choices} Choices
 */
import { currentBranch } from './branches.js';
import { make, mark, say } from './dom.js';
import { digits, glyph, named } from './glyphs.js';
import { askedStep } from './state.js';

/** Tokens that are shown at first. */
const FEW = 10;

/**
 * @param {() => Translate} words
 * @param {(at: number, choice: Choice & {rank: number}, piece: string) => void} branchOff Continue with another token.
 * @returns {import('./types.js').View}
 */
export function choicesView(words, branchOff) {
  const title = make('h2', 'mg-title');
  const taken = make('p', 'mg-follows');
  const settings = make('p', 'mg-follows mg-settings');
  const columns = ['token', 'before', 'after', 'branch'].map((name) => make('th', `mg-choice-${name}`, { scope: 'col' }));
  const body = make('tbody');
  const table = make('table', 'mg-choices', {}, [make('thead', '', {}, [make('tr', '', {}, columns)]), body]);
  const more = make('button', 'mg-step', { type: 'button', 'aria-expanded': 'false' });
  const header = make('header', 'mg-header', {}, [title, taken]);
  const element = make('section', 'mg-panel mg-area-next', {}, [header, settings, table, more]);
  let all = false;
  /** @type {Readonly<State> | null} */
  let shown = null;
  more.addEventListener('click', () => {
    all = !all;
    if (shown !== null) {
      write(shown);
    }
  });
  body.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest('button') : null;
    const step = shown === null ? null : askedStep(shown);
    const choices = shown?.choices ?? null;
    if (button !== null && step !== null && choices !== null) {
      const rank = Number(button.value);
      const choice = choices.listed[rank];
      branchOff(step, { ...choice, rank }, choices.piece(choice.id));
    }
  });

  /** @param {Readonly<State>} state */
  function write(state) {
    const { choices, analysis, stream } = state;
    const step = askedStep(state);
    if (choices === null || analysis === null || step === null) {
      return;
    }
    const translate = words();
    const { listed, taken: came, sampledFrom } = choices;
    const count = analysis.checkpoint.vocab_size;
    const token = named(choices.piece(came.id), step);
    const [before, after] = [digits(came.before), digits(came.after)];
    say(title, translate('choices', { token }));
    say(taken, translate('choices_taken', { rank: came.rank + 1, count, before, after, sampled: sampledFrom }));
    say(settings, settingsOf(translate, currentBranch(state)?.sampling ?? null));
    ['token', 'before', 'after', 'branch'].forEach((name, index) => say(columns[index], translate(`choices_${name}`)));
    const shownCount = all ? listed.length : Math.min(FEW, listed.length);
    const rows = listed.slice(0, shownCount).map((choice, rank) => row(translate, choices, choice, rank, stream?.done === false));
    if (came.rank >= shownCount) {
      rows.push(row(translate, choices, came, came.rank, true));
    }
    const rest = restOf(choices, shownCount);
    const others = count - shownCount - (came.rank >= shownCount ? 1 : 0);
    if (others > 0) {
      rows.push(restRow(translate('choices_rest', { count: others }), rest));
    }
    body.replaceChildren(...rows);
    more.hidden = listed.length <= FEW;
    say(more, translate(all ? 'choices_fewer' : 'choices_all', { count: listed.length }));
    mark(more, 'aria-expanded', String(all));
  }

  return {
    element,
    update(state, changed) {
      const step = askedStep(state);
      element.hidden = step === null || state.choices === null;
      if (element.hidden) {
        return;
      }
      shown = state;
      if (['choices', 'analysis', 'token', 'language', 'stream'].some((name) => changed.has(/** @type {keyof State} */ (name)))) {
        write(state);
      }
    },
  };
}

/**
 * What all tokens hold together that have no row of their own.
 *
 * @param {Choices} choices
 * @param {number} count The likeliest that have one; the token that came always has.
 * @returns {{before: number, after: number}}
 */
function restOf({ listed, rest, taken }, count) {
  const sum = { ...rest };
  for (const { before, after } of listed.slice(count)) {
    sum.before += before;
    sum.after += after;
  }
  if (taken.rank >= count) {
    sum.before -= taken.before;
    sum.after -= taken.after;
  }
  return { before: Math.max(0, sum.before), after: Math.max(0, sum.after) };
}

/**
 * @param {Translate} translate
 * @param {Choices} choices
 * @param {Choice} choice
 * @param {number} rank
 * @param {boolean} fixed Whether nothing can be continued from it.
 * @returns {HTMLTableRowElement}
 */
function row(translate, choices, choice, rank, fixed) {
  const came = choice.id === choices.taken.id;
  const piece = choices.piece(choice.id);
  const place = make('span', 'mg-place', {}, [String(rank + 1)]);
  const name = make('th', '', { scope: 'row' }, [place, make('span', 'mg-chip', {}, [glyph(piece)])]);
  const last = make('td', 'mg-choice-branch');
  if (came) {
    last.append(make('span', 'mg-remark', {}, [translate('choices_came')]));
  } else if (!fixed) {
    const label = translate('choices_continue', { token: `'${glyph(piece)}'` });
    last.append(make('button', 'mg-fork', { type: 'button', value: String(rank), 'aria-label': label, title: label }, ['↳']));
  }
  const cells = [share(choice.before), share(choice.after, translate('choices_out')), last];
  return make('tr', `${came ? 'mg-taken' : ''}${choice.after === 0 ? ' mg-out' : ''}`, {}, [name, ...cells]);
}

/** @param {string} name @param {{before: number, after: number}} rest @returns {HTMLTableRowElement} */
function restRow(name, { before, after }) {
  const cells = [make('th', '', { scope: 'row' }, [name]), share(before), share(after), make('td')];
  return make('tr', 'mg-rest', {}, cells);
}

/**
 * A bar with its number; what could not be drawn says so where there is a word for it.
 *
 * @param {number} chance
 * @param {string} [none]
 * @returns {HTMLTableCellElement}
 */
function share(chance, none) {
  const bar = make('span', 'mg-bar');
  bar.style.setProperty('--share', String(chance));
  const text = chance === 0 && none !== undefined ? none : digits(chance);
  return make('td', '', {}, [make('span', 'mg-share', {}, [bar, make('span', 'mg-number', {}, [text])])]);
}

/** @param {Translate} translate @param {Sampling | null} sampling @returns {string} */
export function settingsOf(translate, sampling) {
  if (sampling === null) {
    return '';
  }
  const off = translate('choices_off');
  const { temperature, top_k: topK, top_p: topP, min_p: minP, repetition_penalty: penalty } = sampling;
  return translate('choices_settings', {
    temperature,
    top_k: topK ?? off,
    top_p: topP ?? off,
    min_p: minP ?? off,
    penalty: penalty === 1 ? off : penalty,
  });
}
