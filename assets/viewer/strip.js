/**
 * The text as tokens. The chosen token lights up what it attends to, or what attends to it; hovering only looks.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./state.js').Store} Store
 *
 * @typedef {object} Item  One token of the strip.
 * @property {string} text
 * @property {number} position
 * @property {boolean} generated
 * @property {'seen' | 'predicted' | 'later' | 'pending'} role  In the window; the one that was predicted from it; after that one;
 *   generated, but not analysed yet.
 */
import { rampOf } from './colours.js';
import { make, mark, say } from './dom.js';
import { glyph, named } from './glyphs.js';
import { colouringOf, levelIn } from './scale.js';
import { attentionOf, chosenToken, shownToken } from './state.js';
import { surpriseLevel, surpriseRamp } from './surprise.js';
import { goTo } from './time.js';

/** Characters of what lies outside the window that are shown. */
const OUTSIDE_SHOWN = 160;

/**
 * What stands in the strip: the text outside the window and the tokens from the window's first on.
 *
 * @param {Readonly<State>} state
 * @returns {{outside: string, count: number, items: Item[]}}
 */
export function contents({ analysis, whole, stream }) {
  if (analysis === null || whole === null) {
    return { outside: '', count: 0, items: [] };
  }
  const { start, promptLength, cropped, predicts } = analysis;
  const text = whole.text;
  // A stream that continues another text than the one on the page waits for its own pictures.
  const generated = stream?.promptLength === promptLength ? stream.generated : [];
  const ahead = generated.length === 0 || generated.every((id, index) => (text[promptLength + index] ?? id) === id);
  const end = Math.max(ahead ? text.length : 0, promptLength + generated.length);
  /** @type {Item[]} */
  const items = [];
  for (let position = start; position < end; position += 1) {
    const id = generated[position - promptLength] ?? text[position];
    const known = text[position] === id;
    const after = predicts !== null && position >= predicts;
    const role = after ? (position === predicts ? 'predicted' : 'later') : known ? 'seen' : 'pending';
    const piece = known ? whole.piece(id) : (stream?.pieces[id] ?? '');
    items.push({ text: piece, position, generated: position >= promptLength, role });
  }
  const outside = cropped.slice(-OUTSIDE_SHOWN).map((id) => glyph(whole.piece(id)));
  return { outside: outside.join(''), count: cropped.length, items };
}

/**
 * @param {Store} store
 * @param {() => Translate} words
 * @returns {import('./types.js').View}
 */
export function stripView(store, words) {
  const outside = make('span', 'mg-outside');
  const tokens = make('div', 'mg-tokens', { role: 'listbox', tabindex: '0', dir: 'auto', 'aria-orientation': 'horizontal' });
  const scroller = make('div', 'mg-strip', {}, [outside, tokens]);
  /** @type {HTMLSpanElement[]} */
  const spans = [];

  listen(tokens, store);

  /** @param {Readonly<State>} state */
  function write(state) {
    const { outside: text, items } = contents(state);
    say(outside, text);
    outside.hidden = text === '';
    while (spans.length > items.length) {
      spans.pop()?.remove();
    }
    items.forEach((item, index) => {
      if (index === spans.length) {
        spans.push(tokens.appendChild(make('span', '', { role: 'option', id: `mg-token-${index}` })));
      }
      const span = spans[index];
      say(span, glyph(item.text));
      mark(span, 'aria-label', named(item.text, item.position));
      mark(span, 'class', classes(item));
    });
  }

  /** @param {Readonly<State>} state */
  function light(state) {
    const { analysis } = state;
    if (analysis === null) {
      return;
    }
    const chosen = chosenToken(state);
    const shown = shownToken(state);
    const level = levels(state, shown);
    const ramp = state.colouring === 'surprise' ? surpriseRamp(state.theme) : rampOf(state.theme);
    const other = state.direction === 'to' ? state.hovered?.key : state.hovered?.query;
    spans.forEach((span, index) => {
      const position = analysis.start + index;
      const shade = span.classList.contains('mg-pending') ? undefined : level(position);
      paint(span, shade ?? null, ramp);
      span.classList.toggle('mg-masked', shade === null);
      mark(span, 'aria-selected', String(position === chosen));
      span.classList.toggle('mg-looking', state.hovered !== null && position === shown && position !== chosen);
      span.classList.toggle('mg-partner', position === other && position !== shown);
    });
    mark(tokens, 'aria-activedescendant', chosen === null ? '' : `mg-token-${chosen - analysis.start}`);
  }

  return {
    element: scroller,
    update(state, changed) {
      if (changed.has('language')) {
        mark(tokens, 'aria-label', words()('strip'));
      }
      if (changed.has('analysis') || changed.has('stream')) {
        write(state);
      }
      tokens.classList.toggle('mg-moving', state.playing);
      light(state);
    },
  };
}

/**
 * The level of each token's colour by true position: what it says about the shown token, or how surprising it was; null where it
 * is masked, undefined where there is nothing to say.
 *
 * @param {Readonly<State>} state
 * @param {number | null} shown
 * @returns {(position: number) => number | null | undefined}
 */
function levels(state, shown) {
  const { analysis, colouring: subject, direction } = state;
  if (subject === 'surprise') {
    return (position) => surpriseLevel(state, position) ?? undefined;
  }
  const attention = attentionOf(state, shown);
  const colouring = colouringOf(state);
  return (position) => {
    const weight = attention?.weights[position - attention.first];
    const key = direction === 'to' ? position : shown;
    return weight === undefined ? undefined : levelIn(colouring, weight, key === analysis?.start);
  };
}

/** @param {Item} item @returns {string} */
function classes({ text, generated, role }) {
  const names = ['mg-token'];
  if (generated) {
    names.push('mg-generated');
  }
  if (role !== 'seen') {
    names.push(`mg-${role}`);
  }
  if (text.includes('\n')) {
    names.push('mg-break');
  }
  if (glyph(text) !== text) {
    names.push('mg-sign');
  }
  return names.join(' ');
}

/**
 * @param {HTMLElement} span
 * @param {number | null} level
 * @param {import('./colours.js').Ramp} ramp
 */
function paint(span, level, ramp) {
  if (level === null) {
    span.removeAttribute('style');
    return;
  }
  const inks = span.classList.contains('mg-sign') ? ramp.faint : ramp.ink;
  for (const [property, colour] of [['--weight', ramp.css[level]], ['--on-weight', inks[level]]]) {
    if (span.style.getPropertyValue(property) !== colour) {
      span.style.setProperty(property, colour);
    }
  }
}

/**
 * Click, hover and keys on the tokens, one listener each for all of them.
 *
 * @param {HTMLElement} tokens
 * @param {Store} store
 */
function listen(tokens, store) {
  /** @param {Event} event @returns {number | null} */
  const positionOf = (event) => {
    const { analysis } = store.state;
    const span = event.target instanceof Element ? event.target.closest('[role=option]') : null;
    if (analysis === null || span === null || span.classList.contains('mg-pending')) {
      return null;
    }
    return analysis.start + Number(span.id.replace('mg-token-', ''));
  };

  tokens.addEventListener('click', (event) => {
    const position = positionOf(event);
    if (position !== null) {
      // What the model had not seen yet at this step has a step of its own.
      const seen = position < (store.state.analysis?.end ?? 0);
      store.set(seen ? { token: position } : { ...goTo(store.state, position), playing: false });
    }
  });
  tokens.addEventListener('pointerover', (event) => {
    const position = event.pointerType === 'touch' ? null : positionOf(event);
    store.set({ hovered: position === null ? null : { query: position, key: position } });
  });
  tokens.addEventListener('pointerleave', () => store.set({ hovered: null }));
  tokens.addEventListener('keydown', (event) => {
    const { analysis } = store.state;
    const chosen = chosenToken(store.state);
    if (analysis === null || chosen === null) {
      return;
    }
    const last = analysis.end - 1;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: analysis.start, End: last };
    const place = places[event.key];
    if (place === undefined || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    event.preventDefault();
    const token = Math.min(Math.max(place, analysis.start), last);
    store.set({ token, hovered: null });
    tokens.children[token - analysis.start]?.scrollIntoView({ block: 'nearest' });
  });
}
