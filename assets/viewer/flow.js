/**
 * The text on its way through the model: every step as a box with its line of code, its shape and a small picture of its numbers. One block
 * is open, with one of its heads; the others are buttons.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./tabs.js').Tools} Tools
 * @typedef {import('./unpack.js').Numbers} Numbers
 * @typedef {import('./smallpicture.js').Place} Place
 *
 * @typedef {object} InShort
 * @property {number} low
 * @property {number} high
 * @property {number} mean
 * @property {number} deviation
 *
 * @typedef {InShort & {name: string, code: string, axes: string[], shape: number[], inside: boolean}} Stage
 *
 * @typedef {object} Flow
 * @property {number} layer
 * @property {number} head
 * @property {Stage[]} stages
 * @property {(InShort & {shape: number[]})[]} stream  First the embeddings, then what each layer hands on.
 * @property {boolean} residual
 * @property {number} head_size
 * @property {Parameters<typeof import('./unpack.js').picturesOf>[0]} pictures
 */
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { chooser } from './chooser.js';
import { divergingRamp } from './diverging.js';
import { make, mark, say } from './dom.js';
import { glyph, named } from './glyphs.js';
import { smallPicture } from './smallpicture.js';
import { chosenToken } from './state.js';
import { picturesOf } from './unpack.js';

/** The boxes of each row; those that a model lacks are left out, and so is a row without any. */
const BEFORE = [{ title: 'embedding', names: ['ids', 'token_embedding', 'position_embedding', 'embedding'] }];
const INSIDE = [
  { title: 'heads', names: ['norm1', 'query', 'key', 'value'] },
  { title: 'weights', names: ['scores', 'pattern', 'head_output'] },
  { title: 'mix', names: ['concat', 'projection', 'attention_sum'] },
  { title: 'network', names: ['norm2', 'hidden', 'activation', 'feed_forward', 'layer_output'] },
];
const AFTER = [{ title: 'out', names: ['norm_f', 'logits'] }];
/** What stands before a box, where it is no arrow. */
const SIGNS = /** @type {Record<string, string>} */ ({ ids: '', position_embedding: '+', embedding: '=', key: '', value: '', attention_sum: '+ x =', layer_output: '+ x =' });
/** Most tokens whose ids are written out. */
const MOST_IDS = 12;

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function flowView({ store, words, host }) {
  const heads = make('div', 'mg-inline');
  const hint = make('p', 'mg-hint');
  const bar = make('div', 'mg-scale-bar');
  const ends = [make('span'), make('span'), make('span')];
  const legend = make('div', 'mg-flow-legend', {}, [bar, make('div', 'mg-flow-ends', {}, ends)]);
  const status = make('p', 'mg-status', { role: 'status' });
  const steps = make('div', 'mg-flow');
  const element = make('div', 'mg-swept', {}, [hint, legend, heads, status, steps]);
  steps.addEventListener('keydown', (event) => {
    const step = { PageDown: 1, PageUp: -1 }[event.key];
    const all = Array.from(steps.querySelectorAll('canvas[tabindex]'));
    const here = all.indexOf(/** @type {Element} */ (event.target));
    if (step !== undefined && here >= 0) {
      event.preventDefault();
      /** @type {HTMLElement} */ (all[Math.min(all.length - 1, Math.max(0, here + step))]).focus();
    }
  });
  // One picture is reached by Tab; from there Page Up and Page Down lead to the others.
  steps.addEventListener('focusin', ({ target }) => {
    if (target instanceof HTMLCanvasElement) {
      steps.querySelectorAll('canvas[tabindex]').forEach((each) => mark(each, 'tabindex', each === target ? '0' : '-1'));
    }
  });
  /** @type {Asking<Flow>} */
  const asking = new Asking(host, 'flow', () => show(store.state));
  /** @type {Flow | null} */
  let unpacked = null;
  /** @type {Record<string, Numbers> | null} */
  let pictures = null;
  /** @type {{element: HTMLElement, point: (token: number | null) => void}[]} */
  let boxes = [];
  let built = '';
  /** @type {{count: number, choice: ReturnType<typeof chooser<string>>} | null} */
  let headChoice = null;

  /** @param {Flow} value */
  function unpack(value) {
    unpacked = value;
    pictures = null;
    void picturesOf(value.pictures).then((numbers) => {
      if (unpacked === value) {
        pictures = numbers;
        show(store.state);
      }
    });
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const { analysis, language, theme } = state;
    const translate = words();
    const { value } = asking;
    say(status, statusOf(translate, asking, language));
    say(hint, translate('flow_hint'));
    bar.style.background = divergingRamp(theme).gradient;
    ['flow_scale_low', 'flow_scale_zero', 'flow_scale_high'].forEach((key, index) => say(ends[index], translate(key)));
    steps.hidden = value === null || pictures === null;
    steps.classList.toggle('mg-waits', asking.isWaiting);
    if (value !== null && value !== unpacked) {
      unpack(value);
    }
    if (analysis === null || value === null || pictures === null) {
      return;
    }
    chooseHead(state, translate);
    const key = JSON.stringify([value.layer, value.head, analysis.request, theme, language]);
    if (key !== built) {
      built = key;
      build(value, pictures, analysis, state, translate);
    }
    const token = chosenToken(state);
    for (const each of boxes) {
      each.point(token === null ? null : token - analysis.start);
    }
    mark(steps, 'data-shown', `${value.layer}:${value.head}:${analysis.length}`);
  }

  /** @param {Readonly<State>} state @param {Translate} translate */
  function chooseHead({ analysis, layer, head }, translate) {
    const count = analysis?.heads ?? 1;
    if (headChoice?.count !== count) {
      const names = Array.from({ length: count }, (_, index) => String(index));
      headChoice = { count, choice: chooser(names, (name) => store.set({ head: Number(name) })) };
      heads.replaceChildren(headChoice.choice.element);
    }
    headChoice.choice.name(translate('flow_head'), (name) => `L${layer}H${name}`);
    headChoice.choice.show(String(head));
  }

  /**
   * @param {Flow} value
   * @param {Record<string, Numbers>} numbers
   * @param {Analysis} analysis
   * @param {Readonly<State>} state
   * @param {Translate} translate
   */
  function build(value, numbers, analysis, state, translate) {
    const focused = document.activeElement instanceof HTMLElement && steps.contains(document.activeElement) ? document.activeElement.dataset.layer : undefined;
    boxes = [];
    /** @param {{title: string, names: string[]}} row */
    const rowOf = ({ title, names }) => {
      const there = names.flatMap((name) => value.stages.filter((stage) => stage.name === name));
      if (there.length === 0) {
        return [];
      }
      const name = `L${value.layer}H${value.head}`;
      const made = there.map((stage) => {
        const columns = stage.name === 'concat' ? [value.head / analysis.heads, 1 / analysis.heads] : null;
        const one = box({ stage, numbers: numbers[stage.name], columns, analysis, theme: state.theme, translate, choose: (token) => store.set({ token: token + analysis.start }) });
        boxes.push(one);
        return one.element;
      });
      return [make('section', 'mg-flow-group', {}, [make(there[0].inside ? 'h4' : 'h3', 'mg-flow-heading', {}, [translate(`flow_group_${title}`, { name })]), make('div', 'mg-flow-boxes', {}, made)])];
    };
    const layers = value.stream.length - 1;
    /** @param {number} from @param {number} to */
    const closed = (from, to) => {
      const buttons = Array.from({ length: Math.max(0, to - from) }, (_, index) => {
        const layer = from + index;
        const one = layerButton({ layer, short: value.stream[layer + 1], numbers: numbers[`stream_${layer + 1}`], analysis, theme: state.theme, translate, open: () => store.set({ layer }) });
        boxes.push(one);
        return one.element;
      });
      return buttons.length === 0 ? [] : [make('div', 'mg-flow-closed', {}, buttons)];
    };
    const open = make('section', 'mg-flow-open', { 'data-layer': String(value.layer), tabindex: '-1' }, [
      make('h3', 'mg-subtitle', {}, [translate(value.residual ? 'flow_block' : 'flow_attention_only', { layer: value.layer })]),
      ...INSIDE.flatMap(rowOf),
    ]);
    mark(open, 'aria-label', translate('flow_open', { layer: value.layer }));
    steps.replaceChildren(...BEFORE.flatMap(rowOf), ...closed(0, value.layer), open, ...closed(value.layer + 1, layers), ...AFTER.flatMap(rowOf));
    steps.querySelectorAll('canvas[tabindex]').forEach((each, index) => mark(each, 'tabindex', index === 0 ? '0' : '-1'));
    if (focused !== undefined) {
      /** @type {HTMLElement | null} */ (steps.querySelector(`[data-layer="${focused}"]`))?.focus({ preventScroll: true });
    }
  }

  return {
    element,
    update(state) {
      const { analysis, layer, head } = state;
      if (analysis !== null && !isWriting(state)) {
        asking.ask(aboutOf(analysis), { layer, head });
      }
      show(state);
    },
  };
}

/**
 * A number with as many digits as tell it apart: `−1.32`, `0.0041`, `125`.
 *
 * @param {number} value
 * @returns {string}
 */
export function written(value) {
  return String(Number(value.toPrecision(3))).replaceAll('-', '−');
}

/** @param {InShort} short @param {Translate} translate */
function inShort({ low, high, mean, deviation }, translate) {
  return translate('flow_numbers', { low: written(low), high: written(high), mean: written(mean), deviation: written(deviation) });
}

/** @param {number[]} shape */
const shapeOf = (shape) => `(${shape.join(', ')})`;

/**
 * What a cell says when it is pointed at.
 *
 * @param {Place} place
 * @param {string} axis The letter of the columns.
 * @param {Analysis} analysis
 * @param {Translate} translate
 */
export function cellOf({ tokens, columns, value }, axis, analysis, translate) {
  /** @param {[number, number]} range @param {(index: number) => string} name */
  const ranged = ([from, to], name) => (from === to ? name(from) : `${name(from)} – ${name(to)}`);
  /** @param {number} index */
  const token = (index) => named(analysis.token(analysis.start + index), analysis.start + index);
  const column = axis === 'T' ? ranged(columns, token) : ranged(columns, String);
  const kind = axis === 'T' ? 'key' : axis === 'V' ? 'id' : 'dimension';
  return translate(`flow_cell_${kind}`, { token: ranged(tokens, token), column, value: written(value) });
}

/**
 * One step. `columns` says which share of the picture to frame: where it begins, and how wide it is.
 *
 * @param {{stage: Stage, numbers: Numbers | undefined, columns: number[] | null, analysis: Analysis, theme: import('./types.js').Theme, translate: Translate, choose: (token: number) => void}} about
 */
function box({ stage, numbers, columns, analysis, theme, translate, choose }) {
  const { name, code, axes, shape } = stage;
  const title = translate(`flow_${name}`);
  const size = `(${axes.join(', ')}) = ${shapeOf(shape)}`;
  const sign = SIGNS[name] ?? '→';
  const element = make('div', 'mg-flow-box', { 'data-stage': name }, [
    make('p', 'mg-flow-title', {}, [...(sign === '' ? [] : [make('span', 'mg-flow-sign', { 'aria-hidden': 'true' }, [sign])]), title]),
  ]);
  const line = make('code', 'mg-flow-code', {}, [code]);
  const shaped = make('p', 'mg-flow-shape', {}, [make('span', '', {}, [`(${axes.join(', ')})`]), ' = ', make('span', '', {}, [shapeOf(shape)])]);
  if (numbers === undefined) {
    const ids = analysis.ids.slice(0, MOST_IDS).map((id, index) => make('li', '', {}, [make('span', 'mg-chip', {}, [glyph(analysis.token(analysis.start + index))]), ` ${id}`]));
    element.append(make('ol', 'mg-flow-ids', {}, [...ids, ...(analysis.ids.length > MOST_IDS ? [make('li', '', {}, ['…'])] : [])]), shaped, line);
    return { element, point: () => {} };
  }
  const short = inShort(stage, translate);
  const reading = make('p', 'mg-flow-reading', { 'aria-live': 'polite' }, [short]);
  const axis = axes[axes.length - 1];
  const picture = smallPicture((place) => say(reading, place === null ? short : cellOf(place, axis, analysis, translate)), choose);
  const kind = name === 'pattern' ? 'weights' : 'signed';
  picture.show({ numbers, tokens: shape[shape.length - 2], across: shape[shape.length - 1], kind, theme, label: `${title}, ${size}, ${short}` });
  if (columns !== null) {
    const frame = make('span', 'mg-flow-columns', { 'aria-hidden': 'true' });
    frame.style.setProperty('left', `${columns[0] * 100}%`);
    frame.style.setProperty('width', `${columns[1] * 100}%`);
    picture.element.append(frame);
  }
  element.append(picture.element, shaped, reading, line);
  return { element, point: picture.point };
}

/**
 * A block that is not open: what it hands on, and the button that opens it.
 *
 * @param {{layer: number, short: InShort & {shape: number[]}, numbers: Numbers, analysis: Analysis, theme: import('./types.js').Theme, translate: Translate, open: () => void}} about
 */
function layerButton({ layer, short, numbers, translate, theme, open }) {
  const title = translate('flow_block', { layer });
  const label = translate('flow_open_block', { layer });
  const picture = smallPicture(null, () => {});
  picture.show({ numbers, tokens: short.shape[1], across: short.shape[2], kind: 'signed', theme, label: inShort(short, translate) });
  const parts = [make('span', 'mg-flow-title', {}, [make('span', 'mg-flow-sign', { 'aria-hidden': 'true' }, ['→']), title]), picture.element, make('span', 'mg-flow-shape', {}, [`x ${shapeOf(short.shape)}`])];
  const element = make('button', 'mg-flow-layer', { type: 'button', 'data-layer': String(layer), 'aria-label': label, title: label }, parts);
  element.addEventListener('click', open);
  return { element, point: picture.point };
}
