/**
 * Plotly in the colours of the page, for the tabs: one drawing an element, drawn anew with what is on the page.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./tabs.js').Tools} Tools
 */
import { make, mark } from './dom.js';
import { colourOf, CONFIG } from './figure.js';

/**
 * @param {number} height In pixels.
 * @param {(point: {x: number, y: number, curveNumber: number, pointNumber: number}) => void} [clicked]
 * @param {(point: {x: number, y: number} | null) => void} [hovered] null when the pointer leaves.
 */
export function plotView(height, clicked, hovered) {
  const plot = /** @type {PlotlyElement} */ (make('div', 'mg-chart', { role: 'img' }));
  plot.style.height = `${height}px`;
  let isListening = false;
  /** @type {(() => void) | null} */
  let again = null;
  new ResizeObserver(() => {
    if (plot.clientWidth > 0) {
      again?.();
    }
  }).observe(plot);

  return {
    element: plot,
    /** @returns {void} */
    forget() {
      again = null;
    },
    /**
     * @param {string} name What a screen reader says.
     * @param {object[]} data
     * @param {Record<string, any>} layout
     */
    draw(name, data, layout) {
      mark(plot, 'aria-label', name);
      let drawn = 0;
      again = () => {
        if (plot.clientWidth === 0 || plot.clientWidth === drawn) {
          return;
        }
        drawn = plot.clientWidth;
        /** @type {Record<string, any>} */
        const whole = { ...base(plot), width: drawn, height: plot.clientHeight, ...layout };
        whole.xaxis = { ...axis(plot), ...layout.xaxis };
        whole.yaxis = { ...axis(plot), ...layout.yaxis };
        void Plotly.react(plot, data, whole, CONFIG);
        if (!isListening) {
          isListening = true;
          plot.on('plotly_click', ({ points: [point] }) => clicked?.(/** @type {any} */ (point)));
          plot.on('plotly_hover', ({ points: [point] }) => hovered?.(point));
          plot.on('plotly_unhover', () => hovered?.(null));
        }
      };
      again();
    },
  };
}

/** @param {HTMLElement} element */
function base(element) {
  return {
    margin: { l: 60, r: 16, t: 16, b: 48 },
    paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)',
    font: { family: getComputedStyle(element).fontFamily, size: 12, color: colourOf(element, '--mg-soft') },
    hovermode: 'closest',
    hoverlabel: {
      bgcolor: colourOf(element, '--mg-panel'),
      bordercolor: colourOf(element, '--mg-control'),
      font: { color: colourOf(element, '--mg-text'), size: 13 },
    },
    dragmode: false,
    showlegend: false,
  };
}

/** @param {HTMLElement} element */
function axis(element) {
  const line = colourOf(element, '--mg-line');
  return { gridcolor: line, zerolinecolor: line, linecolor: line, ticks: '', automargin: true };
}
