/**
 * The branches of a text, side by side: where each leaves the one it came from, how likely it was, and its text.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./branches.js').Branch} Branch
 */
import { logProbability, MOST } from './branches.js';
import { make, mark, say } from './dom.js';
import { digits, glyph, named } from './glyphs.js';

/**
 * @param {() => Translate} words
 * @param {(branch: Branch) => void} look
 * @returns {import('./types.js').View}
 */
export function branchesView(words, look) {
  const title = make('h2', 'mg-title');
  const hint = make('p', 'mg-hint');
  const list = make('ul', 'mg-branches');
  const element = make('section', 'mg-panel mg-area-branches', {}, [make('header', 'mg-header', {}, [title, hint]), list]);
  /** @type {Branch[]} */
  let shown = [];
  list.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest('button') : null;
    const branch = shown.find(({ id }) => String(id) === button?.value);
    if (branch !== undefined) {
      look(branch);
    }
  });

  return {
    element,
    update(state, changed) {
      element.hidden = state.branches.length < 2;
      if (changed.has('language')) {
        say(title, words()('branches'));
        mark(list, 'aria-label', words()('branches'));
        say(hint, words()('branches_hint', { most: MOST }));
      }
      const watched = /** @type {(keyof State)[]} */ (['branches', 'branch', 'language', 'stream']);
      if (!watched.some((name) => changed.has(name))) {
        return;
      }
      shown = element.hidden ? [] : state.branches;
      const focused = document.activeElement instanceof HTMLButtonElement ? document.activeElement : null;
      const focus = focused !== null && list.contains(focused) ? focused.value : null;
      list.replaceChildren(...shown.map((branch, index) => card(words(), state, branch, index)));
      if (focus !== null) {
        Array.from(list.querySelectorAll('button')).find(({ value }) => value === focus)?.focus();
      }
    },
  };
}

/**
 * @param {Translate} translate
 * @param {Readonly<State>} state
 * @param {Branch} branch
 * @param {number} index
 * @returns {HTMLLIElement}
 */
function card(translate, state, branch, index) {
  const chosen = branch.id === state.branch;
  const button = make('button', 'mg-look', { type: 'button', value: String(branch.id), 'aria-pressed': String(chosen) });
  button.append(make('span', 'mg-branch-number', {}, [String(index + 1)]), ' ', nameOf(translate, state, branch));
  button.disabled = state.stream?.done === false;
  const numbers = make('p', 'mg-note', { title: translate('branch_total_about') }, [likelihood(translate, branch)]);
  return make('li', chosen ? 'mg-branch mg-chosen' : 'mg-branch', {}, [button, numbers, textOf(translate, branch)]);
}

/** @param {Translate} translate @param {Readonly<State>} state @param {Branch} branch @returns {string} */
function nameOf(translate, { branches }, { id, picked, pieces }) {
  if (picked === null) {
    return translate(id === branches[0].id ? 'branch_first' : 'branch_beside');
  }
  const from = branches.findIndex((each) => each.id === picked.from);
  const token = named(pieces[picked.choice.id] ?? '', picked.at);
  const other = glyph(branches[from]?.pieces[picked.instead] ?? pieces[picked.instead] ?? '');
  return translate('branch_from', { token, other: `'${other}'` });
}

/** @param {Translate} translate @param {Branch} branch @returns {string} How likely the pick and the whole text were. */
function likelihood(translate, branch) {
  const { picked, generated } = branch;
  const total = logProbability(branch);
  const parts = [];
  if (picked !== null) {
    const { before, after, rank } = picked.choice;
    parts.push(translate('branch_picked', { before: digits(before), after: digits(after), rank: rank + 1 }));
  }
  if (total !== null && generated.length > 0) {
    const count = generated.length;
    const bits = (-total / count).toFixed(2);
    parts.push(translate('branch_total', { total: total.toFixed(1).replace('-', '−'), count, bits }));
  }
  return parts.join(' · ');
}

/**
 * The generated text; what it shares with the branch that it left stands back, and the first difference is marked.
 *
 * @param {Translate} translate
 * @param {Branch} branch
 * @returns {HTMLParagraphElement}
 */
function textOf(translate, { generated, pieces, picked, promptLength }) {
  /** @param {number[]} ids */
  const text = (ids) => ids.map((id) => pieces[id] ?? '').join('');
  const element = make('p', 'mg-branch-text', { dir: 'auto' });
  if (picked === null) {
    element.append(text(generated));
    return element;
  }
  const fork = picked.at - promptLength;
  const pick = make('mark', 'mg-pick', { title: translate('branch_difference') }, [glyph(pieces[picked.choice.id] ?? '')]);
  element.append(make('span', 'mg-shared', {}, [text(generated.slice(0, fork))]), pick, text(generated.slice(fork + 1)));
  return element;
}
