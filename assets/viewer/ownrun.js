/**
 * Training from the page, in the tab *Training*: a form for text, name and settings, and the run that is under way, as the server
 * tells of it. The server knows the run; this shows it, asks how it stands while the tab is open, and forgets nothing that is typed.
 *
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').State} State
 *
 * @typedef {object} Preset
 * @property {string} name
 * @property {number} layers
 * @property {number} heads
 * @property {number} width
 * @property {number} window
 * @property {number} steps
 * @property {number} batch
 * @property {number} needed  Characters that a text needs.
 *
 * @typedef {object} Run
 * @property {string} name
 * @property {string} status
 * @property {string} reason  Why it ended by itself.
 * @property {number} step
 * @property {number} steps
 * @property {number | null | undefined} tokens_per_second
 * @property {number | null | undefined} seconds_left
 * @property {{step: number[], loss: number[]}} losses
 * @property {{step: number[], train: number[], validation: number[]}} estimates
 * @property {boolean} listed  Whether it stands among the models already.
 * @property {number[]} snapshots
 * @property {{step: number, start: string, written: string} | null} sample
 *
 * @typedef {object} Standing  How things stand.
 * @property {boolean} allowed
 * @property {Preset[]} presets
 * @property {{bytes: number, characters: number, steps: number}} limits
 * @property {string} folder
 * @property {Run | null} run
 * @property {{name: string, step: number, steps: number}[]} stopped
 */
import { readNotice } from './decode.js';
import { make, mark, say, wordButton } from './dom.js';
import { ownRunForm } from './ownrunform.js';
import { runChart } from './runchart.js';

const PACE_MS = 2000;
const ENDED = ['stopped', 'finished', 'failed'];

/**
 * @param {import('./tabs.js').Tools} tools
 * @param {(name: string, isNew: boolean) => void} follow Called with the run's name whenever there is something new to look at, and
 *   with whether it is the first of a run under way.
 */
export function ownRun({ store, words, host }, follow) {
  /** @type {Standing | null} */
  let standing = null;
  /** @type {import('./types.js').Notice | null} */
  let notice = null;
  let newest = 0;
  let followed = '';
  let followedRun = '';
  let isFirst = true;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const summary = make('summary');
  const about = make('p', 'mg-hint');
  const said = make('p', 'mg-own-said', { role: 'alert' });
  const form = ownRunForm((asked) => void ask('start', asked));
  const progress = progressView(() => void ask('stop'), open);
  const stopped = stoppedView((name) => void ask('resume', name));
  const element = make('details', 'mg-own', {}, [
    summary,
    make('div', 'mg-own-body', {}, [about, progress.element, stopped.element, form.element, said]),
  ]);
  element.hidden = true;
  document.addEventListener('visibilitychange', poll);

  /** Look at a model; the page shows it at its top. @param {string} name */
  function open(name) {
    host.trigger('open_model', name);
    scrollTo({ top: 0, behavior: 'instant' });
  }

  /** @returns {boolean} */
  function isUnderWay() {
    const run = standing?.run ?? null;
    return run !== null && !ENDED.includes(run.status);
  }

  function poll() {
    clearTimeout(timer);
    if (store.state.tab === 'training' && document.visibilityState === 'visible') {
      void ask('state');
    }
  }

  /** @param {string} act @param {unknown} [given] */
  async function ask(act, given) {
    clearTimeout(timer);
    if (act !== 'state') {
      notice = null;
      followedRun = '';
      complain();
    }
    const message = await host.server.train(act, given ?? null).catch(() => null);
    if (message?.kind === 'answer' && message.request > newest) {
      newest = message.request;
      standing = message.value;
      show();
      focusAfter(act);
    } else if (act !== 'state') {
      const lost = { code: '', action: null, sentences: /** @type {Record<string, string>} */ ({}) };
      notice = message?.kind === 'notice' ? readNotice(message) : lost;
      complain();
    }
    clearTimeout(timer);
    if (isUnderWay()) {
      timer = setTimeout(poll, PACE_MS);
    }
  }

  /** What was pressed is no longer there; go on with what took its place. @param {string} act */
  function focusAfter(act) {
    if (act === 'start' || act === 'resume') {
      progress.focus();
    }
  }

  function complain() {
    say(said, notice === null ? '' : (notice.sentences[store.state.language] ?? words()('training_lost')));
  }

  function show() {
    if (standing === null) {
      return;
    }
    element.hidden = !standing.allowed;
    if (!standing.allowed) {
      return;
    }
    const { run } = standing;
    const translate = words();
    form.element.hidden = isUnderWay();
    form.show(translate, standing);
    progress.show(translate, run);
    stopped.show(translate, standing);
    mark(element, 'data-run', run === null ? '' : `${run.status}:${run.step}`);
    if (isFirst) {
      element.open = isUnderWay() || standing.stopped.length > 0;
      isFirst = false;
    }
    const key = run === null || !run.listed ? '' : `${run.name}:${run.snapshots.at(-1) ?? ''}:${ENDED.includes(run.status)}`;
    if (run !== null && key !== '' && key !== followed) {
      followed = key;
      follow(run.name, isUnderWay() && followedRun !== run.name);
      followedRun = run.name;
    }
  }

  return {
    element,
    /** @param {State} state @param {Set<keyof State>} changed */
    update(state, changed) {
      if (changed.has('language')) {
        say(summary, words()('train_title'));
        say(about, words()('train_about'));
        complain();
      }
      if (changed.has('language') || changed.has('theme')) {
        show();
      }
      if (changed.has('tab') && state.tab === 'training') {
        poll();
      }
    },
  };
}

/**
 * The run: how far it is, its losses, and what the model writes by now.
 *
 * @param {() => void} stop
 * @param {(name: string) => void} open
 */
function progressView(stop, open) {
  let name = '';
  const status = make('h3', 'mg-subtitle', { tabindex: '-1' });
  const bar = make('progress', 'mg-own-bar');
  const numbers = make('p', 'mg-note mg-number');
  const end = wordButton('mg-step', stop);
  const look = wordButton('mg-action', () => open(name));
  const soon = make('p', 'mg-hint');
  const chart = runChart(() => undefined);
  const losses = make('p', 'mg-note');
  const title = make('h4', 'mg-subtitle');
  const sample = make('p', 'mg-sample');
  const drawn = make('div', 'mg-two', {}, [make('div', '', {}, [losses, chart.element]), make('div', '', {}, [title, sample])]);
  const element = make('div', 'mg-own-run', {}, [make('div', '', { role: 'status' }, [status]), bar, make('div', 'mg-inline', {}, [numbers, end.element, look.element]), soon, drawn]);

  return {
    element,
    focus: () => status.focus(),
    /** @param {Translate} translate @param {Run | null} run */
    show(translate, run) {
      element.hidden = run === null;
      if (run === null) {
        return;
      }
      const isEnded = ENDED.includes(run.status);
      ({ name } = run);
      say(status, translate(`train_status_${run.status}`, { name, reason: run.reason }));
      bar.max = run.steps;
      bar.value = run.step;
      mark(bar, 'aria-label', translate('train_progress', { name }));
      say(numbers, numbersOf(translate, run, isEnded));
      end.name(translate('train_stop'));
      end.element.hidden = isEnded || run.status === 'measuring';
      end.element.disabled = run.status === 'stopping';
      look.name(translate('train_open'));
      look.element.hidden = !run.listed;
      const isSoon = run.losses.step.length + run.estimates.step.length === 0;
      say(soon, translate('train_soon'));
      soon.hidden = !isSoon || isEnded;
      drawn.hidden = isSoon;
      if (!isSoon) {
        say(losses, translate('train_losses'));
        chart.show(chartOf(translate, run));
      }
      title.hidden = run.sample === null && title.textContent === '';
      if (run.sample !== null) {
        const { step, start, written } = run.sample;
        say(title, translate('train_writes', { step: step.toLocaleString('en') }));
        sample.replaceChildren(make('span', 'mg-typed', {}, [start]), make('span', 'mg-written', {}, [written]));
      }
    },
  };
}

/** @param {Translate} translate @param {Run} run @param {boolean} isEnded */
function numbersOf(translate, run, isEnded) {
  const { step, steps, tokens_per_second: speed, seconds_left: left } = run;
  const said = [translate('train_at', { step: step.toLocaleString('en'), steps: steps.toLocaleString('en') })];
  if (!isEnded && typeof speed === 'number' && step > 0) {
    said.push(translate('train_speed', { speed: Math.round(speed).toLocaleString('en') }));
  }
  if (run.status === 'training' && typeof left === 'number') {
    said.push(left >= 90 ? translate('train_left_minutes', { count: Math.round(left / 60) }) : translate('train_left_seconds', { count: Math.ceil(left) }));
  }
  return said.join(' · ');
}

/** @param {Translate} translate @param {Run} run @returns {import('./runchart.js').Chart} */
function chartOf(translate, { losses, estimates }) {
  return {
    curves: [
      { name: translate('train_batch'), steps: losses.step, values: losses.loss, colour: '--mg-control', width: 1.25 },
      { name: translate('train_training'), steps: estimates.step, values: estimates.train, colour: '--mg-generated', width: 2, dash: 'dot' },
      { name: translate('train_held_out'), steps: estimates.step, values: estimates.validation, colour: '--mg-text', width: 2 },
    ],
    step: null,
    label: translate('train_losses'),
    steps: translate('training_steps'),
    range: 'values',
    legend: true,
  };
}

/** Runs that can be gone on with. @param {(name: string) => void} resume */
function stoppedView(resume) {
  const about = make('p', 'mg-hint');
  const list = make('ul', 'mg-inline');
  const element = make('div', 'mg-own-stopped', {}, [list, about]);
  return {
    element,
    /** @param {Translate} translate @param {Standing} standing */
    show(translate, { stopped, folder }) {
      element.hidden = stopped.length === 0;
      say(about, translate('train_stopped_runs', { folder }));
      const texts = stopped.map(({ name, step, steps }) => translate('train_resume', { name, step, steps }));
      const key = JSON.stringify(texts);
      if (list.dataset.texts === key) {
        return;
      }
      list.dataset.texts = key;
      list.replaceChildren(...texts.map((text, index) => {
        const button = wordButton('mg-step', () => resume(stopped[index].name));
        button.name(text);
        return make('li', '', {}, [button.element]);
      }));
    },
  };
}
