/**
 * The tab "Compare": the chosen head beside the same on another text, in another model, beside another head, or before and after a change.
 * All three maps have the same axes, and a cell under the pointer is marked in each of them.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').View} View
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./tabs.js').Tools} Tools
 *
 * @typedef {'same' | 'changed' | 'inserted' | 'deleted'} Mark
 * @typedef {[Mark, number | null, number | null, string]} Slot  Mark, true position in the first and in the second, token.
 *
 * @typedef {object} Compared
 * @property {[number, number]} shape  Layers and heads of the second's model.
 * @property {Slot[]} slots
 * @property {[number, number]} other
 * @property {(number | null)[][]} first  Rows without their future; null where there is no such cell.
 * @property {(number | null)[][]} second
 * @property {number[][] | null} distances
 */
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { labelled } from './axis.js';
import { chooser } from './chooser.js';
import { plotlyScale } from './colours.js';
import { divergingScale, largest, signed } from './diverging.js';
import { make, mark, say } from './dom.js';
import { effectMap } from './effectmap.js';
import { colourOf } from './figure.js';
import { digits, escapeForPlotly, glyph, shortGlyph } from './glyphs.js';
import { picker } from './picker.js';
import { plotView } from './plot.js';
import { changeOf, isChanged } from './whatif.js';

const WITH = /** @type {const} */ (['text', 'model', 'head', 'change']);
const SIDES = /** @type {const} */ (['first', 'second', 'difference']);
/** @type {Readonly<Record<Mark, string>>} */
const SIGNS = { same: '', changed: '≠', inserted: '+', deleted: '−' };
const LISTED = 8;

/** @param {string} chosen A head as the list has it. */
function otherHead(chosen) {
  const [layer, head] = chosen.split('.').map(Number);
  return chosen === '' ? {} : { other_layer: layer, other_head: head };
}

/** @param {number} layers @param {number} heads @returns {string[][]} All of them, as a list has them. */
const headsOf = (layers, heads) => Array.from({ length: layers * heads }, (_, index) => {
  const [layer, head] = [Math.floor(index / heads), index % heads];
  return [`${layer}.${head}`, `L${layer}H${head}`];
});

/** @param {object} options What was asked. @returns {typeof WITH[number]} With what the head is compared. */
const kindOf = (options) => WITH.find((kind) => kind !== 'head' && kind in options) ?? 'head';

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function compareTab({ store, words, host }) {
  /** @type {typeof WITH[number]} */
  let kind = 'text';
  /** `theirs` is a head of the other model; empty for the same as here. */
  const chosen = { text: /** @type {string | null} */ (null), model: '', head: '', theirs: '' };
  /** The shape of the other model, once it is known. */
  let other = { model: '', layers: 0, heads: 0 };
  const kinds = chooser(WITH, (value) => {
    kind = value;
    follow(store.state);
  });
  const label = make('span');
  const field = make('textarea', 'mg-field mg-other-text', { rows: '2' });
  const compare = make('button', 'mg-step', { type: 'submit' });
  const form = make('form', 'mg-inline mg-other', {}, [make('label', 'mg-inline mg-other', {}, [label, field]), compare]);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    chosen.text = field.value;
    follow(store.state);
  });
  const models = picker((value) => {
    chosen.model = value;
    chosen.theirs = '';
    follow(store.state);
  });
  const heads = picker((value) => {
    chosen[kind === 'model' ? 'theirs' : 'head'] = value;
    follow(store.state);
  });
  const hint = make('p', 'mg-hint');
  const status = make('p', 'mg-status', { role: 'status' });
  const aligned = make('p', 'mg-aligned', { dir: 'auto' });
  const reading = make('p', 'mg-reading');
  const plots = SIDES.map(() => plotView(360, undefined, (cell) => look(cell)));
  const titles = SIDES.map(() => make('h3', 'mg-subtitle'));
  const maps = make('div', 'mg-compared', {}, plots.map((plot, index) => make('div', 'mg-swept', {}, [titles[index], plot.element])));
  const changesTitle = make('h3', 'mg-subtitle');
  const changes = make('ol', 'mg-changes');
  const distances = effectMap((layer, head) => store.set({ layer, head }));
  const lists = make('div', 'mg-sweeps', {}, [make('div', 'mg-swept', {}, [changesTitle, changes]), distances.element]);
  const found = make('div', 'mg-swept', {}, [aligned, reading, maps, lists]);
  const element = make('div', 'mg-swept', {}, [make('div', 'mg-inline', {}, [kinds.element]), form, models.element, heads.element, hint, status, found]);
  /** @type {Asking<Compared | {shape: [number, number], slots: null}>} */
  const asking = new Asking(host, 'compare', () => {
    if (asking.value !== null && asking.options.model !== undefined) {
      const [layers, all] = asking.value.shape;
      other = { model: asking.options.model, layers, heads: all };
    }
    show(store.state);
  });

  /** The models that can be chosen, by what the server calls them: the public ones, and the visitor's own. @returns {string[][]} */
  function modelNames() {
    const own = /** @type {string[][]} */ (host.props.own_models ?? []);
    const named = own.map(([key, name]) => [key, words()('compare_own_model', { name })]);
    return [.../** @type {string[]} */ (host.props.models ?? []).map((name) => [name, name]), ...named];
  }

  /** @param {string} model @returns {string} What a person calls it. */
  const nameOf = (model) => modelNames().find(([key]) => key === model)?.[1] ?? model;

  /**
   * What is asked; null while something is missing.
   *
   * @param {Readonly<State>} state
   */
  function optionsOf({ analysis, layer, head, whatIf }) {
    if (analysis === null) {
      return null;
    }
    if (kind === 'text') {
      return chosen.text === null || chosen.text === '' ? null : { layer, head, text: chosen.text };
    }
    if (kind === 'change') {
      return isChanged(whatIf) ? { layer, head, change: changeOf(whatIf, analysis.start, analysis.end) } : null;
    }
    if (kind === 'model') {
      return chosen.model === '' ? null : { layer, head, model: chosen.model, ...otherHead(chosen.theirs) };
    }
    return chosen.head === '' ? null : { layer, head, ...otherHead(chosen.head) };
  }

  /** @param {Readonly<State>} state */
  function follow(state) {
    const options = optionsOf(state);
    if (state.analysis !== null && options !== null && !isWriting(state)) {
      asking.ask(aboutOf(state.analysis), options);
    }
    show(state);
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const { analysis, language } = state;
    if (analysis === null) {
      return;
    }
    const translate = words();
    controls(state, analysis, translate);
    const isAsked = optionsOf(state) !== null;
    say(status, isAsked ? statusOf(translate, asking, language) : '');
    const { value } = asking;
    found.hidden = !isAsked || value === null || value.slots === null;
    found.classList.toggle('mg-waits', asking.isWaiting);
    if (isAsked && value?.slots === null && !asking.isWaiting) {
      const [layers, all] = value.shape;
      const { layer, head, model } = asking.options;
      say(status, translate('compare_no_head', { model: nameOf(model), layers, heads: all, name: `L${layer}H${head}` }));
    }
    if (found.hidden || value === null || value.slots === null) {
      return;
    }
    draw(state, value, translate);
  }

  /** @param {Readonly<State>} state @param {import('./decode.js').Analysis} analysis @param {Translate} translate */
  function controls(state, analysis, translate) {
    kinds.name(translate('compare_with'), (value) => translate(`compare_${value}`));
    kinds.show(kind);
    say(label, translate('compare_other_text'));
    say(compare, translate('compare_start'));
    form.hidden = kind !== 'text';
    if (chosen.text === null && document.activeElement !== field) {
      field.value = analysis.text.map((id) => analysis.piece(id)).join('');
    }
    const others = modelNames().filter(([model]) => model !== analysis.checkpoint.name);
    models.element.hidden = kind !== 'model';
    models.show(translate('compare_other_model'), [['', '–'], ...others], chosen.model);
    const isKnown = kind === 'model' && chosen.model !== '' && other.model === chosen.model;
    heads.element.hidden = kind !== 'head' && !isKnown;
    if (isKnown) {
      const same = [`${state.layer}.${state.head}`, `L${state.layer}H${state.head}`];
      const all = headsOf(other.layers, other.heads);
      const first = all.some(([head]) => head === same[0]) ? translate('compare_same_head', { name: same[1] }) : '–';
      heads.show(translate('compare_other_head'), [['', first], ...all], chosen.theirs);
    } else {
      heads.show(translate('compare_other_head'), [['', '–'], ...headsOf(analysis.layers, analysis.heads)], chosen.head);
    }
    const missing = kind === 'change' && !isChanged(state.whatIf);
    say(hint, translate(missing ? 'compare_no_change' : `compare_${kind}_about`));
  }

  /** @param {Readonly<State>} state @param {Compared} value @param {Translate} translate */
  function draw(state, value, translate) {
    const { theme } = state;
    // The titles stay with the pictures that are there while others are waited for.
    const { layer, head, model = '' } = asking.options;
    const shown = kindOf(asking.options);
    const [first, second] = [`L${layer}H${head}`, `L${value.other[0]}H${value.other[1]}`];
    const names = [translate(`compare_${shown}_first`, { name: first }), translate(`compare_${shown}_second`, { name: second, model: nameOf(model) }), translate('compare_difference')];
    const square = (/** @type {(number | null)[][]} */ rows) => rows.map((row) => [...row, ...Array.from({ length: rows.length - row.length }, () => null)]);
    const difference = value.second.map((row, query) => row.map((cell, key) => {
      const before = value.first[query][key];
      return cell === null || before === null ? null : cell - before;
    }));
    const most = largest(difference.flat());
    const tokens = value.slots.map(([sign, , , token]) => `${SIGNS[sign]}${shortGlyph(token, 4)}`);
    const places = labelled(0, tokens.length - 1, 24, 24);
    const ticks = { tickvals: places, ticktext: places.map((place) => escapeForPlotly(tokens[place])), showgrid: false, zeroline: false, tickangle: 0 };
    SIDES.forEach((side, index) => {
      say(titles[index], names[index]);
      const z = square(side === 'first' ? value.first : side === 'second' ? value.second : difference);
      const colours = side === 'difference' ? { zmin: -most, zmax: most, colorscale: divergingScale(theme) } : { zmin: 0, zmax: 1, colorscale: plotlyScale(theme, 'sqrt', 1) };
      plots[index].draw(names[index], [{ type: 'heatmap', z, ...colours, showscale: side === 'difference', hoverinfo: 'none', hoverongaps: false, colorbar: { thickness: 10, outlinewidth: 0 } }], {
        margin: { l: 34, r: side === 'difference' ? 60 : 10, t: 24, b: 8 },
        xaxis: { ...ticks, side: 'top' },
        yaxis: { ...ticks, autorange: 'reversed' },
        shapes: [],
      });
    });
    align(value.slots, translate);
    const cells = difference.flatMap((row, query) => row.map((change, key) => ({ query, key, change: change ?? 0 })));
    cells.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
    say(changesTitle, translate('compare_largest'));
    changes.replaceChildren(...cells.slice(0, LISTED).map(({ query, key }) => make('li', '', {}, [sentence(value, query, key, translate)])));
    say(reading, translate('compare_hover'));
    distances.element.hidden = value.distances === null;
    if (value.distances !== null) {
      distances.show(value.distances, [], { layer, head, state, name: translate('compare_distances'), translate, unsigned: true });
    }
  }

  /** @param {Slot[]} slots @param {Translate} translate */
  function align(slots, translate) {
    aligned.hidden = slots.every(([sign]) => sign === 'same');
    aligned.replaceChildren(...slots.map(([sign, , , token]) => {
      const tag = sign === 'inserted' ? 'ins' : sign === 'deleted' ? 'del' : sign === 'changed' ? 'mark' : 'span';
      return make(tag, `mg-slot-${sign}`, sign === 'same' ? {} : { title: translate(`compare_${sign}`) }, [glyph(token)]);
    }));
  }

  /** @param {Compared} value @param {number} query @param {number} key @param {Translate} translate */
  function sentence(value, query, key, translate) {
    const weights = [value.first[query][key], value.second[query][key]];
    // The server counts from where the window begins, and from the first token of a text of its own.
    const start = store.state.analysis?.start ?? 0;
    const otherStart = 'text' in asking.options ? 0 : start;
    /** @param {number} place */
    const token = (place) => {
      const [, before, after, text] = value.slots[place];
      const first = before === null ? null : before + start;
      const second = after === null ? null : after + otherStart;
      return `'${glyph(text)}' (${first === second ? first : `${first ?? '–'} → ${second ?? '–'}`})`;
    };
    const written = weights.map((weight) => (weight === null ? translate('compare_not_there') : digits(weight)));
    const [old, now] = weights;
    const change = old === null || now === null ? '–' : signed(now - old);
    return translate('compare_cell', { query: token(query), key: token(key), first: written[0], second: written[1], change });
  }

  /** Mark a cell in all three maps. @param {{x: number, y: number} | null} cell */
  function look(cell) {
    const { value } = asking;
    const [key, query] = [Math.round(cell?.x ?? -1), Math.round(cell?.y ?? -1)];
    const isCell = value !== null && value.slots !== null && query >= 0 && query < value.slots.length && key >= 0 && key <= query;
    say(reading, isCell && value !== null && value.slots !== null ? sentence(value, query, key, words()) : words()('compare_hover'));
    for (const { element: plot } of plots) {
      const line = { color: colourOf(plot, '--mg-accent'), width: 2 };
      const shape = { type: 'rect', x0: key - 0.5, x1: key + 0.5, y0: query - 0.5, y1: query + 0.5, line };
      if (plot.classList.contains('js-plotly-plot')) {
        void Plotly.relayout(plot, { shapes: isCell ? [shape] : [] });
      }
    }
  }

  mark(field, 'spellcheck', 'false');
  return { element, update: (state) => follow(state) };
}
