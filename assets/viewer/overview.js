/**
 * All heads at once: a grid of buttons, one row for each layer, each with its picture, its name and what it mostly does.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./state.js').Store} Store
 */
import { make, mark, say } from './dom.js';
import { colouringOf, coloursOfAll, levelsOf, pictureColouring, pictureRamp, recoloured, written } from './scale.js';
import { badgeOf } from './scores.js';
import { picturedOf, reviewed } from './views.js';

/** With more heads than these in a row, the grid gets more of the page. */
const MANY = 8;
/** A thumbnail may have this many cells for each pixel on a side before cells are joined. */
const CELLS_PER_PIXEL = 1.5;

/** @implements {View} */
export class OverviewView {
  #store;
  #words;
  #grid = make('div', 'mg-grid', { role: 'group' });
  #note = make('p', 'mg-note');
  #colours = make('p', 'mg-note mg-note-colours');
  /** @type {HTMLButtonElement[]} */
  #buttons = [];
  #layers = 0;
  #heads = 0;
  /** The width of a button in device pixels. */
  #width = 0;

  /** @param {Store} store @param {() => Translate} words */
  constructor(store, words) {
    this.#store = store;
    this.#words = words;
    this.element = make('div', '', {}, [this.#grid, this.#note, this.#colours]);
    this.#grid.addEventListener('click', (event) => {
      const button = event.target instanceof Element ? event.target.closest('button') : null;
      const index = button === null ? -1 : this.#buttons.indexOf(button);
      if (index >= 0) {
        store.set({ layer: Math.floor(index / this.#heads), head: index % this.#heads });
      }
    });
    this.#grid.addEventListener('keydown', (event) => this.#move(event));
    new ResizeObserver(() => {
      const before = this.#width;
      this.#measure();
      if (this.#width !== before) {
        this.#paint();
      }
    }).observe(this.#grid);
  }

  /** @param {State} state @param {Set<keyof State>} changed */
  update(state, changed) {
    const { analysis } = state;
    if (analysis === null) {
      return;
    }
    const rebuilt = analysis.layers !== this.#layers || analysis.heads !== this.#heads;
    if (rebuilt) {
      this.#build(analysis);
    }
    const otherColours = recoloured(changed);
    if (otherColours || reviewed(changed) || changed.has('theme') || changed.has('language')) {
      this.#paint();
    }
    if (otherColours || changed.has('analysis') || changed.has('language') || changed.has('badge')) {
      this.#label(state);
    }
    if (rebuilt || changed.has('layer') || changed.has('head')) {
      this.#choose(state);
    }
  }

  /** Reading a size makes the browser lay out the page at once, so this is done only where the size may be another. */
  #measure() {
    this.#width = Math.round((this.#buttons[0]?.clientWidth ?? 0) * devicePixelRatio);
  }

  #paint() {
    const { state } = this.#store;
    const analysis = picturedOf(state);
    if (analysis !== null && this.#width > 0) {
      const side = paint(state, analysis, this.#buttons, this.#width);
      const length = analysis.edge - analysis.start;
      this.#note.hidden = side === length;
      say(this.#note, this.#words()('overview_pooled', { length, side }));
    }
  }

  /** @param {Analysis} analysis */
  #build({ layers, heads }) {
    [this.#layers, this.#heads] = [layers, heads];
    this.#grid.style.setProperty('--heads', String(heads));
    this.#grid.classList.toggle('mg-many', heads > MANY);
    this.#grid.classList.toggle('mg-flat', layers <= heads && heads <= MANY);
    const hidden = { 'aria-hidden': 'true' };
    const columns = Array.from({ length: heads }, (_, head) => make('span', 'mg-column', hidden, [`H${head}`]));
    const rows = Array.from({ length: layers }, (_, layer) => [
      make('span', 'mg-row', hidden, [`L${layer}`]),
      ...Array.from({ length: heads }, (_unused, head) => headButton(layer, head)),
    ]);
    this.#grid.replaceChildren(make('span', '', hidden), ...columns, ...rows.flat());
    this.#buttons = Array.from(this.#grid.querySelectorAll('button'));
    this.#measure();
  }

  /** @param {Readonly<State>} state */
  #choose({ layer, head }) {
    this.#buttons.forEach((button, index) => {
      const chosen = index === layer * this.#heads + head;
      mark(button, 'aria-pressed', String(chosen));
      mark(button, 'tabindex', chosen ? '0' : '-1');
    });
  }

  /** @param {Readonly<State>} state */
  #label(state) {
    const words = this.#words();
    mark(this.#grid, 'aria-label', words('overview'));
    say(this.#colours, coloursOfAll(words, state));
    this.#buttons.forEach((button, index) => {
      const [layer, head] = [Math.floor(index / this.#heads), index % this.#heads];
      const best = badgeOf(state, layer, head);
      const share = best?.value.toFixed(2) ?? '';
      const badge = best === null ? '' : words(`badge_${best.name}`);
      const name = `L${layer}H${head}`;
      const label = best === null ? name : `${name}, ${words(`score_${best.name}`)} ${share}`;
      const place = /** @type {HTMLElement} */ (button.lastElementChild);
      mark(place, 'data-long', `${badge} ${share.replace(/^0/, '')}`);
      // A chosen score is the same on every head, so its number says more than its name.
      mark(place, 'data-short', state.badge === null ? badge : share);
      mark(place, 'data-top', state.range === 'head' ? `0–${written(colouringOf(state, layer, head).top)}` : '');
      mark(button, 'aria-label', label);
      mark(button, 'title', label);
    });
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const { layer, head } = this.#store.state;
    /** @type {Record<string, [number, number]>} */
    const moves = {
      ArrowUp: [layer - 1, head],
      ArrowDown: [layer + 1, head],
      ArrowLeft: [layer, head - 1],
      ArrowRight: [layer, head + 1],
      Home: [layer, 0],
      End: [layer, this.#heads - 1],
    };
    const move = moves[event.key];
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    event.preventDefault();
    const to = { layer: clamp(move[0], this.#layers), head: clamp(move[1], this.#heads) };
    this.#store.set(to);
    this.#buttons[to.layer * this.#heads + to.head].focus();
  }
}

/** @param {number} value @param {number} count @returns {number} */
function clamp(value, count) {
  return Math.min(Math.max(value, 0), count - 1);
}

/** @param {number} layer @param {number} head @returns {HTMLButtonElement} */
function headButton(layer, head) {
  const canvas = make('canvas', '', { 'aria-hidden': 'true' });
  const name = make('span', 'mg-name', {}, [`L${layer}H${head}`]);
  return make('button', 'mg-head', { type: 'button' }, [canvas, name, make('span', 'mg-badge')]);
}

/** The column of a masked first token is dashed: of this many pixels, one has a colour. */
const DASH = 3;

/**
 * Draw every head's thumbnail with about as many cells as there are pixels, at most; what lies in the future stays transparent.
 *
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @param {HTMLButtonElement[]} buttons
 * @param {number} width Of a button, in device pixels.
 * @returns {number} Cells on one side.
 */
function paint(state, analysis, buttons, width) {
  const { pixels: colours, masked } = pictureRamp(state);
  let image = /** @type {ImageData | null} */ (null);
  buttons.forEach((button, index) => {
    const [layer, head] = [Math.floor(index / analysis.heads), index % analysis.heads];
    const levels = levelsOf(pictureColouring(state, layer, head));
    const { code, side, room } = analysis.thumbnail(layer, head, CELLS_PER_PIXEL * width, levels);
    image ??= new ImageData(room, room);
    const pixels = new Uint32Array(image.data.buffer);
    let cell = 0;
    for (let query = 0; query < side; query += 1) {
      for (let key = 0; key <= query; key += 1, cell += 1) {
        pixels[query * room + key] = colours[code[cell]];
      }
      if (state.maskFirst) {
        pixels[query * room] = query % DASH === 0 ? masked : 0;
      }
    }
    const canvas = /** @type {HTMLCanvasElement} */ (button.firstElementChild);
    if (canvas.width !== room) {
      canvas.width = room;
      canvas.height = room;
    }
    // Cells of several pixels keep their edges; cells of little more than one would come out uneven.
    canvas.classList.toggle('mg-smooth', room * 3 > width);
    canvas.getContext('2d')?.putImageData(image, 0, 0);
  });
  return image?.width ?? 0;
}
