/**
 * The tab *Training*: how a model learned. Curves of its losses and of its heads' scores over the steps, and the page's text at
 * each snapshot that was kept: all heads, the chosen one, and how the model goes on.
 *
 * The pictures are those of the page, drawn from a state of their own: the snapshot's analysis and the head chosen here.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Training} Training
 * @typedef {import('./types.js').Moment} Moment
 * @typedef {import('./types.js').View} View
 */
import { chooser } from './chooser.js';
import { readMoment, readNotice, readTraining } from './decode.js';
import { make, mark, say } from './dom.js';
import { HeatmapView } from './heatmap.js';
import { OverviewView } from './overview.js';
import { ownRun } from './ownrun.js';
import { picker } from './picker.js';
import { nearest, playerView } from './runplayer.js';
import { runChart } from './runchart.js';
import { createStore, NOTHING_YET } from './state.js';

const QUANTITIES = /** @type {const} */ (['losses', 'gap', 'speed']);
const SCORES = /** @type {const} */ (['previous', 'induction', 'duplicate', 'first', 'self']);
/** What is taken over from the page. */
const FOLLOWED = /** @type {const} */ (['theme', 'language', 'scale', 'range', 'maskFirst']);
/** Moments that are kept for the next look. */
const KEPT = 40;

/** @type {import('./tabs.js').Mount} */
export function trainingTab({ store, words, host }) {
  const { theme, language } = store.state;
  const local = createStore({ ...NOTHING_YET, theme, language });
  /** @type {Training | null} */
  let run = null;
  /** @type {Moment | null} */
  let moment = null;
  /** @type {(typeof QUANTITIES)[number]} */
  let quantity = 'losses';
  /** @type {(typeof SCORES)[number]} */
  let score = 'induction';
  /** @type {Map<string, Moment>} */
  const moments = new Map();
  let wanted = '';
  let asked = 0;

  const runs = picker((name) => void open(name, true));
  const about = make('p', 'mg-hint');
  const said = make('p', 'mg-note', { role: 'status' });
  const quantities = chooser(QUANTITIES, (value) => ((quantity = value), charts()));
  const scores = chooser(SCORES, (value) => ((score = value), charts()));
  const losses = runChart((step) => void look(step));
  const curves = runChart((step, place) => {
    chooseCurve(place);
    void look(step);
  });
  const lossTitle = make('h3', 'mg-subtitle');
  const scoreTitle = make('h3', 'mg-subtitle');
  const lossSaid = make('p', 'mg-note');
  const scoreSaid = make('p', 'mg-note mg-appeared');
  const player = playerView((step) => void look(step));
  const headTitle = make('h3', 'mg-subtitle mg-moment-title');
  const sample = make('p', 'mg-sample');
  const sampleTitle = make('h3', 'mg-subtitle');
  const overview = new OverviewView(local, words);
  const heatmap = new HeatmapView(local, words, (_analysis, layer, head) => mark(element, 'data-shown', `${moment?.step}:${layer}:${head}`));
  const pictures = make('div', 'mg-moment', {}, [
    player.element,
    make('div', 'mg-two', {}, [make('div', '', {}, [overview.element]), make('div', '', {}, [headTitle, heatmap.element])]),
    sampleTitle,
    sample,
  ]);
  const scorePart = make('div', '', {}, [make('div', 'mg-header', {}, [scoreTitle, scores.element]), curves.element, scoreSaid]);
  const lossPart = make('div', '', {}, [make('div', 'mg-header', {}, [lossTitle, quantities.element]), losses.element, lossSaid]);
  const own = 'train' in host.server ? ownRun({ store, words, host }, follow) : null;
  const curvesPart = make('div', 'mg-two', {}, [lossPart, scorePart]);
  const element = make('div', 'mg-training', {}, [...(own === null ? [] : [own.element]), runs.element, about, said, curvesPart, pictures]);
  // Nothing is there to be seen before there is a run.
  runs.element.hidden = curvesPart.hidden = pictures.hidden = true;

  local.subscribe((state, changed) => {
    heatmap.update(state, changed);
    overview.update(state, changed);
    if (changed.has('layer') || changed.has('head') || changed.has('analysis') || changed.has('language')) {
      charts();
      tell();
    }
  });

  /** @returns {string} What stands on the page. */
  function text() {
    const { whole } = store.state;
    return whole === null ? '' : whole.text.map((id) => whole.piece(id)).join('');
  }

  /** @param {string} name @param {boolean} exactly */
  async function open(name, exactly) {
    asked += 1;
    const turn = asked;
    const message = await host.server.training_run(name, exactly);
    if (turn !== asked) {
      return;
    }
    if (message === null || message.kind === 'notice') {
      complain(message);
      return;
    }
    const before = run;
    run = await readTraining(message);
    if (before?.name === run.name && before.steps.length > 0 && moment !== null) {
      goOn(run, moment.step === before.steps.at(-1) ? run.steps.at(-1) : moment.step);
      return;
    }
    moment = null;
    player.stop();
    begin(run);
  }

  /** @param {string} name A run that has come further. @param {boolean} isNew Whether it shall be looked at in any case. */
  function follow(name, isNew) {
    if (isNew || run?.name === name) {
      void open(name, true);
    }
  }

  /** Go on looking at a run of which there is more now. @param {Training} opened @param {number | undefined} step */
  function goOn(opened, step) {
    offer();
    player.steps(opened.steps);
    charts();
    tell();
    void look(step ?? 0);
  }

  /** @param {Training} opened */
  function begin(opened) {
    const { steps } = opened;
    offer();
    say(said, '');
    runs.element.hidden = curvesPart.hidden = false;
    scorePart.hidden = steps.length === 0;
    pictures.hidden = steps.length === 0;
    player.steps(steps);
    if (steps.length === 0) {
      charts();
      tell();
      return;
    }
    local.set(best(opened));
    void look(steps[steps.length - 1]);
  }

  /** @param {Training} opened The head whose score is the highest in the end. */
  function best({ layers, heads, curve }) {
    let found = { layer: 0, head: 0, value: -1 };
    for (let layer = 0; layer < layers; layer += 1) {
      for (let head = 0; head < heads; head += 1) {
        const value = curve(score, layer, head).at(-1) ?? NaN;
        found = value > found.value ? { layer, head, value } : found;
      }
    }
    return { layer: found.layer, head: found.head };
  }

  /** @param {number} step Any; the nearest snapshot is looked at. */
  async function look(step) {
    if (run === null || run.steps.length === 0) {
      return;
    }
    const near = nearest(run.steps, step);
    const shown = text();
    const key = JSON.stringify([run.name, near, shown]);
    wanted = key;
    player.show(near);
    let found = moments.get(key) ?? null;
    if (found === null) {
      const message = await host.server.training_moment(run.name, near, shown);
      if (message === null || message.kind === 'notice') {
        if (wanted === key) {
          complain(message);
        }
        return;
      }
      found = await readMoment(message);
      if (moments.size >= KEPT) {
        moments.clear();
      }
      moments.set(key, found);
    }
    if (wanted === key) {
      moment = found;
      say(said, found.ownText ? words()('training_own_text', { name: run.name }) : '');
      local.set({ analysis: found.analysis, whole: found.analysis, hovered: null, token: null });
      player.arrived();
    }
  }

  /** @param {any} message */
  function complain(message) {
    player.stop();
    const notice = message === null ? null : readNotice(message);
    say(said, notice?.sentences[store.state.language] ?? words()('training_lost'));
  }

  /** @param {number} place Of a curve; the chosen head's is the last. */
  function chooseCurve(place) {
    const { layer, head } = local.state;
    const others = everyHead(run).filter((each) => each.layer !== layer || each.head !== head);
    if (place < others.length) {
      local.set(others[place]);
    }
  }

  function charts() {
    quantities.show(quantity);
    scores.show(score);
    if (run === null) {
      return;
    }
    const translate = words();
    const { records } = run;
    const step = moment?.step ?? null;
    const common = { step, steps: translate('training_steps'), legend: false };
    const gap = records.validation.map((value, index) => value - records.train[index]);
    const [train, validation] = [translate('training_train'), translate('training_validation')];
    const drawn = {
      losses: [
        { name: train, steps: records.step, values: records.train, colour: '--mg-generated', width: 2, dash: /** @type {const} */ ('dot') },
        { name: validation, steps: records.step, values: records.validation, colour: '--mg-text', width: 2 },
      ],
      gap: [{ name: translate('training_gap'), steps: records.step, values: gap, colour: '--mg-text', width: 2 }],
      speed: [{ name: translate('training_speed'), steps: records.step.slice(1), values: records.speed.slice(1), colour: '--mg-text', width: 2 }],
    }[quantity];
    const lossLabel = translate(`training_about_${quantity}`);
    say(lossSaid, lossLabel);
    losses.show({ ...common, curves: drawn, label: lossLabel, range: quantity === 'losses' ? 'values' : 'zero', legend: quantity === 'losses' });
    if (run.steps.length > 0) {
      const told = tellScore(run);
      say(scoreSaid, told);
      curves.show({ ...common, curves: headCurves(run), label: told, range: 'share' });
    }
  }

  /** @param {Training} opened All heads' curves, the chosen one last. */
  function headCurves(opened) {
    const { layer, head } = local.state;
    const chosen = { layer, head };
    const others = everyHead(opened).filter((each) => each.layer !== layer || each.head !== head);
    return [...others, chosen].map((each) => ({
      name: `L${each.layer}H${each.head}`,
      steps: opened.steps,
      values: opened.curve(score, each.layer, each.head),
      colour: each === chosen ? '--mg-accent' : '--mg-control',
      width: each === chosen ? 3.5 : 1.25,
    }));
  }

  /** @param {Training} opened */
  function tellScore(opened) {
    const { layer, head } = local.state;
    const appeared = opened.appeared(score, layer, head);
    const last = opened.curve(score, layer, head).at(-1) ?? NaN;
    const values = { head: `L${layer}H${head}`, score: words()(`score_${score}`), last: last.toFixed(2), step: appeared ?? 0 };
    return words()(appeared === null ? 'training_never' : 'training_appeared', values);
  }

  /** Say what is shown. */
  function tell() {
    if (run === null) {
      return;
    }
    const translate = words();
    const { records, steps, name } = run;
    const end = records.step.length - 1;
    const values = { name, steps: records.step[end].toLocaleString('en'), train: records.train[end].toFixed(3), validation: records.validation[end].toFixed(3) };
    say(about, translate(steps.length > 0 ? 'training_about_run' : 'training_without_snapshots', values));
    if (steps.length === 0) {
      return;
    }
    if (moment === null) {
      return;
    }
    const { layer, head } = local.state;
    const at = records.step.indexOf(moment.step);
    const known = { step: moment.step.toLocaleString('en'), loss: moment.loss?.toFixed(2) ?? '–' };
    const estimated = { ...known, train: records.train[at]?.toFixed(2), validation: records.validation[at]?.toFixed(2) };
    player.say(at < 0 ? translate('training_moment', known) : translate('training_moment_losses', estimated));
    say(headTitle, translate('training_head', { head: `L${layer}H${head}`, step: known.step }));
    say(sampleTitle, translate('training_sample', { step: known.step }));
    const typed = moment.analysis.text.map((id) => moment?.analysis.piece(id) ?? '').join('');
    sample.replaceChildren(make('span', 'mg-typed', {}, [typed]), make('span', 'mg-written', {}, [moment.sample]));
  }

  function offer() {
    if (run !== null) {
      runs.show(words()('training_run'), Object.keys(run.runs).map((name) => [name, name]), run.name);
    }
  }

  function nameAll() {
    const translate = words();
    offer();
    say(lossTitle, translate('training_curves'));
    say(scoreTitle, translate('training_scores'));
    quantities.name(translate('training_curves'), (value) => translate(`training_${value}`));
    scores.name(translate('training_scores'), (value) => translate(`score_${value}`));
    player.name(translate);
  }

  return {
    element,
    update(state, changed) {
      if (changed.has('language')) {
        nameAll();
      }
      local.set(Object.fromEntries(FOLLOWED.map((each) => [each, state[each]])));
      if (changed.has('theme')) {
        charts();
      }
      if (changed.has('tab')) {
        player.stop();
      }
      own?.update(state, changed);
      const model = state.whole?.checkpoint.name ?? '';
      if (run === null && asked === 0) {
        void open(model, false);
      } else if (run !== null && changed.has('whole')) {
        const other = model !== run.name && (run.runs[model] ?? 0) > 0;
        void (other ? open(model, true) : look(moment?.step ?? run.steps.at(-1) ?? 0));
      }
    },
  };
}

/** @param {Training | null} run @returns {{layer: number, head: number}[]} */
function everyHead(run) {
  const { layers, heads } = run ?? { layers: 0, heads: 0 };
  return Array.from({ length: layers * heads }, (_, index) => ({ layer: Math.floor(index / heads), head: index % heads }));
}
