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
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { barsView } from './bars.js';
import { chooser } from './chooser.js';
import { signed } from './diverging.js';
import { make, say, wordButton } from './dom.js';
import { effectMap } from './effectmap.js';
import { digits, glyph, named } from './glyphs.js';
import { toggleKey } from './hidekeys.js';
import { tokenPicker } from './picker.js';
import { chosenToken } from './state.js';
import { includes } from './whatif.js';

const EFFECTS = /** @type {const} */ (['probability', 'loss', 'kl']);

/**
 * @param {Asking<any>} asking
 * @param {{about: import('./asking.js').About, options: object} | null} question
 */
const isAsked = (asking, question) => question !== null && asking.isFor(question.about, question.options);

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function sweepView({ store, words, host }) {
  /** @type {EffectName} */
  let effect = 'probability';
  const title = make('h3', 'mg-subtitle');
  const hint = make('p', 'mg-hint');
  const pick = tokenPicker(() => follow(store.state));
  const start = wordButton('mg-action', () => {
    const question = partsQuestion(store.state);
    if (question !== null) {
      isOpen = true;
      parts.ask(question.about, question.options);
      show(store.state);
    }
  });
  const startKeys = wordButton('mg-step', () => {
    const question = keysQuestion(store.state);
    if (question !== null) {
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
  const controls = make('div', 'mg-inline', {}, [pick.element, start.element, effects.element]);
  const ofParts = make('div', 'mg-swept', {}, [title, hint, controls, status, map.element]);
  const ofKeys = make('div', 'mg-swept', {}, [keysTitle, keysHint, startKeys.element, keysStatus, bars.element]);
  const element = make('div', 'mg-sweeps', {}, [ofParts, ofKeys]);
  /** Once it was asked for, the map follows the chosen token. */
  let isOpen = false;

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
    const options = { position: position - analysis.start, token: pick.token, replace: whatIf.mode === 'mean' ? 'mean' : 'zero' };
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
    return { about: aboutOf(analysis), options: { layer, head, query: place, position: place, token: pick.token, rest } };
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
    say(hint, [translate('sweep_hint'), ...(state.whatIf.mode === 'mean' ? [translate('sweep_mean')] : [])].join(' '));
    pick.show(translate('sweep_token'), translate, analysis, query);
    start.name(translate('sweep_start'));
    effects.name(translate('sweep_effect'), (name) => translate(`sweep_${name}`));
    effects.show(effect);
    // What is on the page may be something else by now.
    const isCurrent = isAsked(parts, partsQuestion(state));
    const { value } = parts;
    map.element.hidden = !isCurrent || value === null;
    map.element.classList.toggle('mg-waits', parts.isWaiting);
    effects.element.hidden = map.element.hidden;
    if (isCurrent && value !== null) {
      const token = `'${glyph(value.token)}'`;
      const loss = value.loss?.toFixed(4) ?? '–';
      const position = analysis.start + parts.options.position;
      const said = translate('sweep_before', { token, position, probability: digits(value.probability), loss });
      say(status, said);
      map.show(value.heads[effect], value.mlps[effect], { layer, head, state, name: translate(`sweep_map_${effect}`, { token }), translate });
    } else {
      say(status, isCurrent ? statusOf(translate, parts, state.language) : '');
    }
    const about = { name: `L${layer}H${head}`, query: named(analysis.token(query), query) };
    say(keysTitle, translate('edges', about));
    say(keysHint, translate('edges_hint'));
    startKeys.name(translate('edges_start'));
    const keysAreCurrent = isAsked(keys, keysQuestion(state));
    const changes = keysAreCurrent && !keys.isWaiting ? keys.value : null;
    bars.element.hidden = changes === null;
    if (changes !== null) {
      showKeys(state, changes, query);
    } else {
      say(keysStatus, !keysAreCurrent ? '' : keys.isWaiting ? translate('asking') : statusOf(translate, keys, state.language));
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

  /** @param {Readonly<State>} state */
  function follow(state) {
    const question = isOpen && !isWriting(state) ? partsQuestion(state) : null;
    if (question !== null) {
      parts.ask(question.about, question.options);
    }
    show(state);
  }

  return {
    element,
    update(state, changed) {
      if (changed.has('token') || changed.has('analysis')) {
        pick.forget();
      }
      follow(state);
    },
  };
}
