/**
 * The chosen head, large: one Plotly heatmap with numeric axes in true positions, query downwards, key to the right.
 *
 * New data or a new size is one `Plotly.react`; another head is one `Plotly.restyle`; another token moves one shape. What is
 * said about a cell stands in an element of our own, because Plotly reads markup in its own labels.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./figure.js').Frame} Frame
 * @typedef {import('./figure.js').Size} Size
 * @typedef {import('./state.js').Store} Store
 */
import { followKeys } from './cell.js';
import { make, mark, say } from './dom.js';
import { axes, axisStyle, coloursOf, CONFIG, frameOf, inside, layoutOf, leftMargin, MARGIN, shapesOf, traceOf, whole } from './figure.js';
import { cellSentence } from './readout.js';
import { recoloured } from './scale.js';
import { picturedOf, reviewed } from './views.js';

/** @implements {View} */
export class HeatmapView {
  #store;
  #words;
  #shown;
  #plot = /** @type {PlotlyElement} */ (make('div', 'mg-plot', { role: 'img' }));
  #tip = make('div', 'mg-tip', { role: 'tooltip' });
  #query = make('span', 'mg-axis mg-axis-query');
  #key = make('span', 'mg-axis mg-axis-key');
  #reset = make('button', 'mg-reset', { type: 'button' });
  #cell;
  /** @type {Frame | null} The part of the map that the person zoomed to. */
  #zoom = null;
  /** @type {(Size & {analysis: Analysis}) | null} What the plot shows now. */
  #drawn = null;
  #drawings = 0;

  /**
   * @param {Store} store
   * @param {() => Translate} words
   * @param {(analysis: Analysis, layer: number, head: number) => void} shown Called when a head has been drawn.
   */
  constructor(store, words, shown) {
    this.#store = store;
    this.#words = words;
    this.#shown = shown;
    this.#tip.hidden = true;
    this.#reset.hidden = true;
    const parts = [make('div', 'mg-future'), this.#plot, this.#query, this.#key, this.#reset, this.#tip];
    this.element = make('div', 'mg-map', {}, parts);
    this.#reset.addEventListener('click', () => {
      this.#zoomTo(null);
      // The button is gone now.
      this.element.focus();
    });
    this.#cell = followKeys(store, this.element, { frame: () => this.#frame, zoomTo: (frame) => this.#zoomTo(frame) });
    // Also tells when a hidden page is shown again.
    new ResizeObserver(() => {
      if (this.element.clientWidth !== this.#drawn?.width || this.element.clientHeight !== this.#drawn.height) {
        this.#draw();
      }
    }).observe(this.element);
  }

  /** @param {State} state @param {Set<keyof State>} changed */
  update(state, changed) {
    const analysis = picturedOf(state);
    if (reviewed(changed) || changed.has('theme')) {
      this.#draw();
    } else if (changed.has('layer') || changed.has('head') || changed.has('fetched')) {
      this.#drawHead();
    }
    if (analysis !== null && this.#drawn?.analysis === analysis) {
      if (recoloured(changed)) {
        const { zmin, zmax, colorscale } = coloursOf(state);
        void Plotly.restyle(this.#plot, { zmin: [zmin], zmax: [zmax], colorscale: [colorscale] }, [0]);
      }
      if (changed.has('token') || changed.has('direction') || changed.has('maskFirst')) {
        void Plotly.relayout(this.#plot, { shapes: shapesOf(state, analysis, this.element) });
      }
    }
    if (changed.has('language') || changed.has('layer') || changed.has('head')) {
      this.#name(state);
    }
    this.#tell(state);
  }

  /** Draw everything: new data, another theme, another size. */
  #draw() {
    const { state } = this.#store;
    const { layer, head } = state;
    const analysis = picturedOf(state);
    const pattern = analysis?.head(layer, head) ?? null;
    const [width, height] = [this.element.clientWidth, this.element.clientHeight];
    if (analysis === null || pattern === null || width === 0) {
      return;
    }
    if (this.#zoom !== null && !inside(this.#zoom, analysis)) {
      this.#zoom = null;
    }
    const first = this.#drawn === null;
    this.#drawn = { analysis, width, height, left: leftMargin(analysis) };
    this.element.style.setProperty('--left', `${this.#drawn.left}px`);
    this.element.style.setProperty('--top', `${MARGIN.top}px`);
    this.#reset.hidden = this.#zoom === null;
    this.#hatch(analysis, this.#zoom ?? whole(analysis));
    const layout = layoutOf(state, analysis, this.#drawn, this.#zoom ?? whole(analysis), this.element);
    const work = Plotly.react(this.#plot, [traceOf(state, analysis, pattern)], layout, CONFIG);
    if (first) {
      this.#listen();
    } else {
      // Or a pointer that rests on a cell would hear nothing of what is new there.
      Plotly.Fx.unhover(this.#plot);
    }
    void this.#finish(work, analysis, layer, head);
  }

  /** @param {Analysis} analysis @param {Frame} frame Only rows that are there have a future. */
  #hatch({ end }, { y: [from, to] }) {
    const share = Math.min(1, Math.max(0, (end - 0.5 - from) / (to - from)));
    this.element.style.setProperty('--rows', String(share));
  }

  /** Draw another head. */
  #drawHead() {
    const { layer, head } = this.#store.state;
    const analysis = picturedOf(this.#store.state);
    const pattern = analysis?.head(layer, head) ?? null;
    if (analysis === null || this.#drawn?.analysis !== analysis) {
      this.#draw();
    } else if (pattern !== null) {
      const { zmin, zmax, colorscale } = coloursOf(this.#store.state);
      const change = { z: [pattern.rows()], zmin: [zmin], zmax: [zmax], colorscale: [colorscale] };
      void this.#finish(Plotly.restyle(this.#plot, change, [0]), analysis, layer, head);
    }
  }

  /** @param {Promise<unknown>} work @param {Analysis} analysis @param {number} layer @param {number} head */
  async #finish(work, analysis, layer, head) {
    this.#drawings += 1;
    const turn = this.#drawings;
    await work;
    if (turn === this.#drawings) {
      this.#shown(analysis, layer, head);
    }
  }

  /** @returns {Frame | null} What is shown of the map; null while nothing is. */
  get #frame() {
    return this.#drawn === null ? null : (this.#zoom ?? whole(this.#drawn.analysis));
  }

  /** @param {Frame | null} frame The part to show; null for the whole map. */
  #zoomTo(frame) {
    if (this.#drawn === null) {
      return;
    }
    this.#zoom = frame;
    this.#reset.hidden = frame === null;
    const { analysis } = this.#drawn;
    this.#hatch(analysis, frame ?? whole(analysis));
    const { xaxis, yaxis } = axes(analysis, this.#drawn, frame ?? whole(analysis));
    const style = axisStyle(this.element);
    void Plotly.relayout(this.#plot, { xaxis: { ...style, ...xaxis }, yaxis: { ...style, ...yaxis } });
    this.#cell.place();
  }

  #listen() {
    const store = this.#store;
    this.#plot.on('plotly_hover', ({ points: [{ x, y }], event }) => {
      store.set({ hovered: { query: Math.round(y), key: Math.round(x) } });
      place(this.#tip, this.element, event);
    });
    this.#plot.on('plotly_unhover', () => store.set({ hovered: null }));
    this.#plot.on('plotly_click', ({ points: [{ x, y }] }) => {
      store.set({ token: Math.round(store.state.direction === 'to' ? y : x) });
    });
    this.#plot.on('plotly_doubleclick', () => this.#zoomTo(null));
    this.#plot.on('plotly_relayout', (change) => {
      const before = this.#frame;
      const frame = before === null ? null : frameOf(change, before);
      if (frame !== null) {
        this.#zoomTo(frame);
      }
    });
  }

  /** @param {Readonly<State>} state */
  #name({ layer, head }) {
    const words = this.#words();
    say(this.#query, words('axis_query'));
    say(this.#key, words('axis_key'));
    say(this.#reset, words('zoom_reset'));
    mark(this.#plot, 'aria-label', words('detail_picture', { name: `L${layer}H${head}` }));
    this.#cell.name(words, `L${layer}H${head}`);
  }

  /** @param {Readonly<State>} state */
  #tell(state) {
    this.#cell.place();
    const { hovered } = state;
    const sentence = hovered?.keys === true || this.element.matches(':hover') ? cellSentence(this.#words(), state) : '';
    this.#tip.hidden = sentence === '';
    say(this.#tip, sentence);
    if (hovered?.keys === true) {
      const { left, top, width, height } = this.#cell.frame.getBoundingClientRect();
      place(this.#tip, this.element, { clientX: left + width / 2, clientY: top + height / 2 });
    }
  }
}

/**
 * Put the read-out beside the pointer, inside the map.
 *
 * @param {HTMLElement} tip
 * @param {HTMLElement} element
 * @param {{clientX: number, clientY: number}} at
 */
function place(tip, element, at) {
  const box = element.getBoundingClientRect();
  const [x, y] = [at.clientX - box.left, at.clientY - box.top];
  const left = Math.min(Math.max(x - tip.offsetWidth / 2, 0), Math.max(0, box.width - tip.offsetWidth));
  const top = y > tip.offsetHeight + 20 ? y - tip.offsetHeight - 14 : y + 20;
  tip.style.transform = `translate(${left}px, ${top}px)`;
}
