/**
 * Every head and every feed-forward network taken away once, each by itself, as a map of layers and heads; and every key hidden once from
 * the chosen query of the chosen head, as bars. Both are asked for by a button, as they cost more than anything else.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 *
 * @typedef {'probability' | 'loss' | 'kl'} EffectName
 * @typedef {Record<EffectName, (number | null)[]>} Effect
 *
 * @typedef {object} Sweep
 * @property {number} position
 * @property {string} token
 * @property {number} probability
 * @property {number | null} loss
 * @property {Record<EffectName, (number | null)[][]>} heads
 * @property {Effect} mlps
 *
 * @typedef {object} EdgeSweep
 * @property {number} query
 * @property {string} token
 * @property {number} probability
 * @property {number[]} weight
 * @property {Effect} keys
 */
import { aboutOf, Asking, isWriting } from './asking.js';
import { barsView } from './bars.js';
import { chooser } from './chooser.js';
import { divergingRamp, largest, signed, signedLevel } from './diverging.js';
import { make, mark, say } from './dom.js';
import { statusOf } from './effects.js';
import { digits, glyph, named } from './glyphs.js';
import { toggleKey } from './hidekeys.js';
import { wordButton } from './partsgrid.js';
import { chosenToken } from './state.js';
import { includes } from './whatif.js';

const EFFECTS = /** @type {const} */ (['probability', 'loss', 'kl']);

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function sweepView({ store, words, host }) {
  /** @type {EffectName} */
  let effect = 'probability';
  const title = make('h3', 'mg-subtitle');
  const hint = make('p', 'mg-hint');
  const start = wordButton('mg-action', () => {
    const question = partsQuestion(store.state);
    if (question !== null) {
      [asked, isOpen] = [JSON.stringify(question), true];
      parts.ask(question.about, question.options);
      show(store.state);
    }
  });
  const startKeys = wordButton('mg-step', () => {
    const question = keysQuestion(store.state);
    if (question !== null) {
      askedKeys = JSON.stringify(question);
      keys.ask(question.about, question.options);
      show(store.state);
    }
  });
  const effects = chooser(EFFECTS, (name) => {
    effect = name;
    show(store.state);
  });
  const map = effectMap((layer, head) => store.set({ layer, head }));
  const status = make('p', 'mg-status', { role: 'status' });
  const keysTitle = make('h3', 'mg-subtitle');
  const keysHint = make('p', 'mg-hint');
  const keysStatus = make('p', 'mg-status', { role: 'status' });
  const bars = barsView((index) => toggleKey(store, index + (store.state.analysis?.start ?? 0)));
  const controls = make('div', 'mg-inline', {}, [start.element, effects.element]);
  const ofParts = make('div', 'mg-swept', {}, [title, hint, controls, status, map.element]);
  const ofKeys = make('div', 'mg-swept', {}, [keysTitle, keysHint, startKeys.element, keysStatus, bars.element]);
  const element = make('div', 'mg-sweeps', {}, [ofParts, ofKeys]);
  /** What the answers are about: what is on the page may be something else by now. */
  let [asked, askedKeys, isOpen] = ['', '', false];

  /** @type {Asking<Sweep>} */
  const parts = new Asking(host, 'sweep', () => show(store.state));
  /** @type {Asking<EdgeSweep>} */
  const keys = new Asking(host, 'edge_sweep', () => show(store.state));

  /** @param {Readonly<State>} state */
  function partsQuestion(state) {
    const { analysis, whatIf } = state;
    const position = chosenToken(state);
    if (analysis === null || position === null) {
      return null;
    }
    const options = { position: position - analysis.start, replace: whatIf.mode === 'mean' ? 'mean' : 'zero' };
    return { about: aboutOf(analysis), options };
  }

  /** @param {Readonly<State>} state */
  function keysQuestion(state) {
    const { analysis, layer, head, whatIf } = state;
    const query = chosenToken(state);
    if (analysis === null || query === null) {
      return null;
    }
    const place = query - analysis.start;
    const rest = whatIf.renormalise ? 'renormalise' : 'keep';
    return { about: aboutOf(analysis), options: { layer, head, query: place, position: place, rest } };
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const { analysis, layer, head } = state;
    const query = chosenToken(state);
    if (analysis === null || query === null) {
      return;
    }
    const translate = words();
    say(title, translate('sweep'));
    say(hint, translate('sweep_hint'));
    start.name(translate('sweep_start'));
    effects.name(translate('sweep_effect'), (name) => translate(`sweep_${name}`));
    effects.show(effect);
    const isCurrent = asked !== '' && asked === JSON.stringify(partsQuestion(state));
    const { value } = parts;
    map.element.hidden = !isCurrent || value === null;
    map.element.classList.toggle('mg-waits', parts.isWaiting);
    effects.element.hidden = map.element.hidden;
    if (isCurrent && value !== null) {
      const token = `'${glyph(value.token)}'`;
      const loss = value.loss?.toFixed(4) ?? '–';
      const said = translate('sweep_before', { token, position: query, probability: digits(value.probability), loss });
      say(status, said);
      map.show(value.heads[effect], value.mlps[effect], { layer, head, state, name: translate(`sweep_map_${effect}`, { token }), translate });
    } else {
      say(status, isCurrent ? statusOf(translate, parts, state.language) : '');
    }
    const about = { name: `L${layer}H${head}`, query: named(analysis.token(query), query) };
    say(keysTitle, translate('edges', about));
    say(keysHint, translate('edges_hint'));
    startKeys.name(translate('edges_start'));
    const keysAreCurrent = askedKeys !== '' && askedKeys === JSON.stringify(keysQuestion(state));
    bars.element.hidden = !keysAreCurrent || keys.value === null;
    if (keysAreCurrent && keys.value !== null) {
      showKeys(state, keys.value, query);
    } else {
      say(keysStatus, keysAreCurrent ? statusOf(translate, keys, state.language) : '');
    }
  }

  /** @param {Readonly<State>} state @param {EdgeSweep} value @param {number} query */
  function showKeys({ analysis, layer, head, whatIf }, value, query) {
    const translate = words();
    const token = `'${glyph(value.token)}'`;
    const measured = effect === 'loss' && value.keys.loss.every((each) => each === null) ? 'probability' : effect;
    say(keysStatus, translate('edges_before', { token, probability: digits(value.probability), effect: translate(`sweep_${measured}`) }));
    bars.show(translate('edges_start'), value.keys[measured].map((change, index) => {
      const key = index + (analysis?.start ?? 0);
      const piece = analysis?.token(key) ?? '';
      const about = { key: named(piece, key), weight: digits(value.weight[index]), change: signed(change) };
      return { token: piece, value: change, about: translate('edges_bar', about), off: includes(whatIf.edges, [layer, head, query, key]) };
    }), (most) => translate('bars_most', { most }));
  }

  return {
    element,
    update(state) {
      // Once it was asked for, the map follows the chosen token.
      const question = isOpen && !isWriting(state) ? partsQuestion(state) : null;
      if (question !== null) {
        asked = JSON.stringify(question);
        parts.ask(question.about, question.options);
      }
      show(state);
    },
  };
}

/**
 * A number for every head and every feed-forward network: a table whose cells are coloured buttons.
 *
 * @param {(layer: number, head: number) => void} choose
 */
export function effectMap(choose) {
  const caption = make('caption');
  const body = make('tbody');
  const head = make('tr');
  const table = make('table', 'mg-effect-map', {}, [caption, make('thead', '', {}, [head]), body]);
  const element = make('div', 'mg-scroll', { tabindex: '0', role: 'region' }, [table]);
  return {
    element,
    /**
     * @param {(number | null)[][]} heads
     * @param {(number | null)[]} mlps
     * @param {{layer: number, head: number, state: Readonly<State>, name: string, translate: Translate, unsigned?: boolean}} about
     */
    show(heads, mlps, { layer: chosenLayer, head: chosenHead, state, name, translate, unsigned = false }) {
      /** @param {number | null} value */
      const number = (value) => (unsigned ? (value ?? 0).toFixed(3) : signed(value));
      say(caption, name);
      mark(element, 'aria-label', name);
      const ramp = divergingRamp(state.theme);
      const most = largest([...heads.flat(), ...mlps]);
      const columns = [...heads[0].map((_, index) => `H${index}`), ...(mlps.length > 0 ? ['MLP'] : [])];
      head.replaceChildren(make('td'), ...columns.map((column) => make('th', '', { scope: 'col' }, [column])));
      /** @param {HTMLElement} inside @param {number | null} value */
      const cell = (inside, value) => {
        const level = signedLevel(value ?? 0, most);
        inside.style.setProperty('--weight', ramp.css[level]);
        inside.style.setProperty('--on-weight', ramp.ink[level]);
        return make('td', '', {}, [inside]);
      };
      const focused = document.activeElement instanceof HTMLElement && body.contains(document.activeElement) ? document.activeElement.dataset.part : null;
      body.replaceChildren(...heads.map((row, layer) => {
        const cells = row.map((value, index) => {
          const part = `L${layer}H${index}`;
          const label = unsigned ? `${part}: ${number(value)}` : translate('sweep_cell', { name: part, change: number(value) });
          const pressed = layer === chosenLayer && index === chosenHead;
          const button = make('button', 'mg-effect', { type: 'button', 'aria-pressed': String(pressed), 'aria-label': label, title: label, 'data-part': part }, [number(value)]);
          button.addEventListener('click', () => choose(layer, index));
          return cell(button, value);
        });
        if (mlps.length > 0) {
          cells.push(cell(make('span', 'mg-effect', { title: translate('sweep_cell', { name: `L${layer} MLP`, change: signed(mlps[layer]) }) }, [signed(mlps[layer])]), mlps[layer]));
        }
        return make('tr', '', {}, [make('th', '', { scope: 'row' }, [`L${layer}`]), ...cells]);
      }));
      if (focused !== undefined && focused !== null) {
        /** @type {HTMLElement | null} */ (body.querySelector(`[data-part="${focused}"]`))?.focus();
      }
    },
  };
}
