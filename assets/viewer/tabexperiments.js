/**
 * The tab *Experiments*: the chapters' experiments with several seeds. What the numbers support and what not, the table, every run
 * as a dot, the losses on the way, and the variants side by side: what they write and what their heads look at.
 *
 * Everything is computed on the server from the saved records; the pictures are those of the page, drawn from states of their own.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Results} Results
 * @typedef {import('./types.js').ResultRow} ResultRow
 * @typedef {import('./types.js').Translate} Translate
 */
import { readNotice, readResults } from './decode.js';
import { make, mark, say } from './dom.js';
import { picker } from './picker.js';
import { resultSides } from './resultsides.js';
import { runsChart, wayChart } from './resultcharts.js';

const COLUMNS = /** @type {const} */ (['variant', 'loss', 'difference', 'parameters', 'seconds']);
/** The experiments whose question is known. */
const QUESTIONS = ['single_vs_multi', 'n_layer', 'activation', 'dropout', 'n_head'];
/** What is taken over from the page. */
const FOLLOWED = /** @type {const} */ (['theme', 'language', 'scale', 'range', 'maskFirst']);

/** @type {import('./tabs.js').Mount} */
export function experimentsTab({ store, words, host }) {
  /** @type {Results | null} */
  let results = null;
  /** @type {import('./types.js').Notice | 'lost' | null} Why what was asked for last is not there. */
  let trouble = null;
  let asked = 0;

  const names = picker((name) => void open(name, null));
  const against = picker((variant) => void open(results?.name ?? null, variant));
  const question = make('h3', 'mg-subtitle');
  const about = make('p', 'mg-hint');
  const said = make('p', 'mg-note', { role: 'status' });
  const table = resultTable();
  const tableSaid = make('p', 'mg-note');
  const supportTitle = make('h3', 'mg-subtitle');
  const support = make('ul', 'mg-verdicts');
  const limits = make('p', 'mg-note');
  const runs = runsChart();
  const way = wayChart();
  const [runsTitle, wayTitle, sidesTitle] = Array.from({ length: 3 }, () => make('h3', 'mg-subtitle'));
  const [runsSaid, waySaid, sidesSaid] = Array.from({ length: 3 }, () => make('p', 'mg-note'));
  const sides = resultSides(words);
  const whole = make('div', 'mg-results', {}, [
    make('div', 'mg-two', {}, [
      make('div', '', {}, [table.element, tableSaid]),
      make('div', '', {}, [supportTitle, support, limits]),
    ]),
    make('div', 'mg-two', {}, [make('div', '', {}, [runsTitle, runs.element, runsSaid]), make('div', '', {}, [wayTitle, way.element, waySaid])]),
    sidesTitle,
    sidesSaid,
    sides.element,
  ]);
  const element = make('div', 'mg-experiments', {}, [make('div', 'mg-inline', {}, [names.element, against.element]), question, about, said, whole]);
  [names.element.hidden, against.element.hidden, whole.hidden] = [true, true, true];

  /** @param {string | null} name The first for null. @param {string | null} variant The one that the others are compared with. */
  async function open(name, variant) {
    asked += 1;
    const turn = asked;
    const message = await host.server.experiment_results(name, variant).catch(() => null);
    const read = message?.kind === 'experiment' ? await readResults(message) : null;
    if (turn !== asked) {
      return;
    }
    trouble = read !== null ? null : message?.kind === 'notice' ? readNotice(message) : 'lost';
    if (read === null) {
      show();
      return;
    }
    const others = keyOf(read) !== keyOf(results);
    results = read;
    show();
    if (others) {
      sides.show(read.sides);
    }
  }

  /** @returns {string} What went wrong, or what is not there yet. */
  function status() {
    if (trouble !== null) {
      return trouble === 'lost' ? words()('experiments_lost') : trouble.sentences[store.state.language];
    }
    return results?.rows.length === 0 ? words()('experiments_unfinished') : '';
  }

  /** Where something went wrong, what was on the page stays there. */
  function show() {
    say(said, status());
    if (results === null) {
      return;
    }
    const translate = words();
    const { rows, steps, seeds, sides: [first] } = results;
    const isComplete = rows.length > 0;
    const known = results.experiment.replaceAll('-', '_');
    [names.element.hidden, against.element.hidden, whole.hidden] = [false, rows.length < 2, !isComplete];
    names.show(translate('experiments_results'), results.names.map((each) => [each, each]), results.name);
    against.show(translate('experiments_against'), rows.map(({ variant }) => [variant, variant]), results.against);
    say(question, QUESTIONS.includes(known) ? translate(`experiments_question_${known}`) : results.experiment);
    const numbers = { steps: steps.toLocaleString('en'), characters: results.characters.toLocaleString('en') };
    say(about, isComplete ? translate('experiments_about', { ...numbers, seeds: seeds.join(', '), batches: results.batches, preset: results.preset }) : '');
    if (!isComplete) {
      return;
    }
    table.show(results, translate);
    say(supportTitle, translate('experiments_supports'));
    support.replaceChildren(...rows.filter(({ variant }) => variant !== results?.against).map((row) => make('li', '', {}, [verdict(row, results?.against ?? '', translate)])));
    say(limits, `${known === 'single_vs_multi' ? `${translate('experiments_more_than_one')} ` : ''}${translate('experiments_limits', numbers)}`);
    say(tableSaid, translate('experiments_about_table'));
    say(runsTitle, translate('experiments_runs'));
    say(runsSaid, translate('experiments_about_runs'));
    say(wayTitle, translate('experiments_curves'));
    say(waySaid, translate('experiments_about_curves'));
    say(sidesTitle, translate('experiments_sides'));
    say(sidesSaid, translate('experiments_about_sides', { seed: first.seed }));
    runs.show(results, translate);
    way.show(results, translate);
  }

  return {
    element,
    update(state, changed) {
      sides.follow(Object.fromEntries(FOLLOWED.map((each) => [each, state[each]])));
      if (changed.has('tab')) {
        // Also when the tab is opened again: an experiment may have gone on meanwhile.
        void open(results?.name ?? null, results?.against ?? null);
      } else if (changed.has('language') || changed.has('theme')) {
        show();
      }
    },
  };
}

/**
 * What stands side by side, so that it is drawn anew only where it is something else.
 *
 * @param {Results | null} results
 */
function keyOf(results) {
  return JSON.stringify([results?.name, results?.sides.map(({ variant, sample, analysis }) => [variant, sample, analysis !== null])]);
}

/**
 * What the numbers of a row support.
 *
 * @param {ResultRow} row
 * @param {string} against
 * @param {Translate} translate
 */
function verdict({ variant, losses, difference, margin, toldApart }, against, translate) {
  const known = { variant, against, difference: signed(difference), seeds: losses.length };
  if (margin === null) {
    return translate('experiments_one_seed', known);
  }
  const told = { ...known, low: signed(difference - margin), high: signed(difference + margin), margin: margin.toFixed(4) };
  if (!toldApart) {
    return translate('experiments_same', told);
  }
  return translate(difference < 0 ? 'experiments_better' : 'experiments_worse', told);
}

/** @param {number} value */
function signed(value) {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(4)}`;
}

/** The table: a row for each variant. */
function resultTable() {
  const caption = make('caption');
  const headings = COLUMNS.map((_, index) => make('th', index === 0 ? '' : 'mg-right', { scope: 'col' }));
  const body = make('tbody');
  const table = make('table', 'mg-head-table', {}, [caption, make('thead', '', {}, [make('tr', '', {}, headings)]), body]);
  const element = make('div', 'mg-scroll', { role: 'region', tabindex: '0' }, [table]);
  return {
    element,
    /** @param {Results} results @param {Translate} translate */
    show({ rows, against }, translate) {
      say(caption, translate('experiments_table'));
      mark(element, 'aria-label', translate('experiments_table'));
      headings.forEach((heading, index) => say(heading, translate(`experiments_${COLUMNS[index]}`)));
      body.replaceChildren(...rows.map((row) => make('tr', '', {}, [
        make('th', '', { scope: 'row' }, [row.variant]),
        ...cells(row, against, translate).map((cell) => make('td', 'mg-right', {}, [cell])),
      ])));
    },
  };
}

/** @param {ResultRow} row @param {string} against @param {Translate} translate @returns {string[]} */
function cells({ variant, mean, spread, difference, margin, parameters, seconds }, against, translate) {
  const compared = variant === against ? translate('experiments_is_compared') : `${signed(difference)} ± ${margin?.toFixed(4) ?? '–'}`;
  return [`${mean.toFixed(4)} ± ${spread?.toFixed(4) ?? '–'}`, compared, parameters.toLocaleString('en'), seconds.toFixed(1)];
}
