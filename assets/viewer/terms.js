/**
 * One logit as the exact sum of what every part of the model wrote in its direction, and what the chosen head brought from which token.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 *
 * @typedef {object} Terms
 * @property {string} token
 * @property {number} id
 * @property {number} logit
 * @property {number} remainder
 * @property {number} embedding
 * @property {number} position_embedding
 * @property {number[][]} heads
 * @property {number[][][]} sources  By layer, head and key.
 * @property {number[]} attention_bias
 * @property {number[]} mlps
 * @property {number} norm_bias
 * @property {number} head_bias
 */
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { barsView } from './bars.js';
import { signed } from './diverging.js';
import { make, say } from './dom.js';
import { colourOf } from './figure.js';
import { glyph, named } from './glyphs.js';
import { tokenPicker } from './picker.js';
import { plotView } from './plot.js';
import { chosenToken } from './state.js';

/**
 * Every term of the sum in the order of the computation; parts that a model lacks are 0 and left out.
 *
 * @param {Terms} value
 * @param {Translate} translate
 * @returns {{name: string, share: number, head: [number, number] | null}[]}
 */
export function termsOf(value, translate) {
  /** @type {{name: string, share: number, head: [number, number] | null}[]} */
  const terms = [
    { name: translate('terms_embedding'), share: value.embedding, head: null },
    { name: translate('terms_position'), share: value.position_embedding, head: null },
  ];
  value.heads.forEach((row, layer) => {
    row.forEach((share, head) => terms.push({ name: `L${layer}H${head}`, share, head: [layer, head] }));
    terms.push({ name: translate('terms_attention_bias', { layer }), share: value.attention_bias[layer], head: null });
    terms.push({ name: `L${layer} MLP`, share: value.mlps[layer], head: null });
  });
  terms.push({ name: translate('terms_norm_bias'), share: value.norm_bias, head: null });
  terms.push({ name: translate('terms_head_bias'), share: value.head_bias, head: null });
  return terms.filter(({ share, head }) => share !== 0 || head !== null);
}

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function termsView({ store, words, host }) {
  /** @type {ReturnType<typeof termsOf>} */
  let drawn = [];
  const pick = tokenPicker(() => follow(store.state));
  const status = make('p', 'mg-status', { role: 'status' });
  const sum = make('p', 'mg-loss');
  const chart = plotView(320, ({ pointNumber }) => {
    const head = drawn[pointNumber]?.head ?? null;
    if (head !== null) {
      store.set({ layer: head[0], head: head[1] });
    }
  });
  const sourcesTitle = make('h3', 'mg-subtitle');
  const sources = barsView(() => {});
  const found = make('div', 'mg-swept', {}, [sum, chart.element, sourcesTitle, sources.element]);
  const element = make('div', 'mg-swept', {}, [pick.element, status, found]);
  /** @type {Asking<Terms>} */
  const asking = new Asking(host, 'logit_terms', () => show(store.state));

  /** @param {Readonly<State>} state */
  function follow(state) {
    const { analysis } = state;
    const position = chosenToken(state);
    if (analysis !== null && position !== null && !isWriting(state)) {
      asking.ask(aboutOf(analysis), { position: position - analysis.start, token: pick.token });
    }
    show(state);
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const { analysis, layer, head, language } = state;
    const translate = words();
    const position = chosenToken(state);
    const { value } = asking;
    say(status, statusOf(translate, asking, language));
    found.hidden = value === null;
    found.classList.toggle('mg-waits', asking.isWaiting);
    if (analysis === null || position === null) {
      return;
    }
    pick.show(translate('terms_token'), translate, analysis, position);
    if (value === null) {
      return;
    }
    const numbers = { logit: value.logit.toFixed(4), remainder: value.remainder.toExponential(0).replaceAll('-', '−') };
    const asked = analysis.start + asking.options.position;
    say(sum, translate('terms_sum', { token: `'${glyph(value.token)}'`, after: named(analysis.token(asked), asked), ...numbers }));
    drawn = termsOf(value, translate);
    const [up, down, accent] = ['--mg-up', '--mg-down', '--mg-accent'].map((name) => colourOf(chart.element, name));
    const chosen = drawn.map((term) => term.head !== null && term.head[0] === layer && term.head[1] === head);
    const marker = {
      color: drawn.map(({ share }) => (share < 0 ? down : up)),
      line: { color: accent, width: chosen.map((is) => (is ? 3 : 0)) },
    };
    const x = drawn.map((_, index) => index);
    const customdata = drawn.map(({ name, share }) => `${name}: ${signed(share)}`);
    chart.draw(
      translate('terms_chart', { token: `'${glyph(value.token)}'` }),
      [{ type: 'bar', x, y: drawn.map(({ share }) => share), marker, customdata, hovertemplate: '%{customdata}<extra></extra>' }],
      {
        margin: { l: 60, r: 16, t: 12, b: 110 },
        xaxis: { tickvals: x, ticktext: drawn.map(({ name }) => name), tickangle: -60, showgrid: false },
        yaxis: { title: { text: translate('terms_axis') } },
      },
    );
    const name = `L${layer}H${head}`;
    const row = value.sources[layer]?.[head] ?? [];
    say(sourcesTitle, translate('terms_sources', { name, token: `'${glyph(value.token)}'`, share: signed(value.heads[layer]?.[head] ?? null) }));
    sources.show(translate('terms_sources_bars', { name }), row.map((share, index) => {
      const key = analysis.start + index;
      const piece = analysis.token(key);
      return { token: piece, value: share, about: `${named(piece, key)}: ${signed(share)}` };
    }), (most) => translate('bars_most', { most }));
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
