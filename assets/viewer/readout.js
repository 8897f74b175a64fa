/**
 * The largest weights of the token that the strip shows, with their numbers.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 */
import { rampOf } from './colours.js';
import { make, say } from './dom.js';
import { digits, glyph, named } from './glyphs.js';
import { colouringOf, levelIn } from './scale.js';
import { attentionOf, shownToken } from './state.js';
import { numberOf, viewedOf } from './views.js';

const SHOWN = 6;

/**
 * The largest weights with their true positions, the largest first; what reads as 0 is left out.
 *
 * @param {{first: number, weights: Float32Array}} attention
 * @returns {{position: number, weight: number}[]}
 */
export function largest({ first, weights }) {
  return Array.from(weights, (weight, index) => ({ position: first + index, weight }))
    .filter(({ weight }) => weight >= 0.0005)
    .sort((a, b) => b.weight - a.weight || a.position - b.position)
    .slice(0, SHOWN);
}

/**
 * The weight of the cell that is looked at, as a sentence.
 *
 * @param {Translate} translate
 * @param {Readonly<State>} state
 * @returns {string}
 */
export function cellSentence(translate, state) {
  const { layer, head, hovered } = state;
  const viewed = viewedOf(state);
  const analysis = viewed?.analysis ?? state.analysis;
  const pattern = analysis?.head(layer, head) ?? null;
  if (analysis === null || pattern === null || hovered === null) {
    return '';
  }
  const weight = pattern.row(hovered.query - analysis.start)[hovered.key - analysis.start];
  const [query, key] = [hovered.query, hovered.key].map((position) => named(analysis.token(position), position));
  if (viewed !== null) {
    const value = numberOf(viewed, weight);
    if (viewed.name === 'logit') {
      return translate('view_logit_hover', { query, key, token: `'${glyph(analysis.piece(followerOf(analysis, hovered.query)))}'`, value });
    }
    return translate('view_hover', { query, key, view: translate(`view_${viewed.name}`), value });
  }
  return translate('hover', { query, key, weight: digits(weight) });
}

/**
 * The token that follows a position in the window; after the last one, the likeliest.
 *
 * @param {import('./decode.js').Analysis} analysis
 * @param {number} position
 * @returns {number}
 */
function followerOf(analysis, position) {
  return analysis.ids[position - analysis.start + 1] ?? analysis.next(position)[0].id;
}

/** @param {() => Translate} words @returns {import('./types.js').View} */
export function readoutView(words) {
  const subject = make('span', 'mg-subject');
  const list = make('ol', 'mg-top');
  const element = make('div', 'mg-readout', {}, [subject, list]);

  /** @param {Readonly<State>} state */
  function show(state) {
    const position = shownToken(state);
    const attention = attentionOf(state, position);
    const { analysis } = state;
    element.hidden = attention === null;
    if (analysis === null || position === null || attention === null) {
      return;
    }
    say(subject, words()(`readout_${state.direction}`, { token: named(analysis.token(position), position) }));
    const ramp = rampOf(state.theme);
    const colouring = colouringOf(state);
    list.replaceChildren(
      ...largest(attention).map(({ position: other, weight }) => {
        const key = state.direction === 'to' ? other : position;
        const level = levelIn(colouring, weight, key === analysis.start);
        const chip = make('span', level === null ? 'mg-chip mg-masked' : 'mg-chip', {}, [glyph(analysis.token(other))]);
        if (level !== null) {
          chip.style.setProperty('--weight', ramp.css[level]);
          chip.style.setProperty('--on-weight', ramp.ink[level]);
        }
        const place = make('span', 'mg-place', {}, [String(other)]);
        return make('li', '', {}, [chip, place, make('span', 'mg-number', {}, [digits(weight)])]);
      }),
    );
  }

  return {
    element,
    update(state) {
      show(state);
    },
  };
}
