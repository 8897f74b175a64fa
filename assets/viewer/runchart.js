/**
 * Curves over the steps of a training run, drawn by Plotly. Steps lie on an axis that is nearly logarithmic and has a place for
 * step 0; the step that is looked at is a line through all curves, and a click on a curve asks for the nearest step.
 *
 * @typedef {object} Curve
 * @property {string} name
 * @property {number[]} steps
 * @property {number[]} values
 * @property {string} colour  A variable of the style sheet.
 * @property {number} width  Pixels.
 * @property {'solid' | 'dot'} [dash]
 *
 * @typedef {object} Chart
 * @property {Curve[]} curves  The last ones lie on top.
 * @property {number | null} step  The one that is looked at.
 * @property {string} label  What is drawn, for people who do not see it.
 * @property {string} steps  What stands below the steps.
 * @property {'values' | 'zero' | 'share'} range  Of the values' axis: what they need, from 0 on, or 0 to 1.
 * @property {boolean} legend  Whether the curves are named above them.
 */
import { colourOf } from './figure.js';
import { plotView } from './plot.js';

const HEIGHT = 250;
const TICKS = [0, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000];
/** The axis is linear below about this step, and logarithmic above it. */
const LINEAR = 10;

/** @param {number} step */
function placeOf(step) {
  return Math.log10(step + LINEAR);
}

/** @param {number} value */
function written(value) {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(3);
}

/**
 * @param {(step: number, curve: number) => void} choose Called with the step that was clicked, and the curve's place in the list.
 */
export function runChart(choose) {
  const plot = plotView(HEIGHT, ({ x, curveNumber }) => choose(Math.round(10 ** x - LINEAR), curveNumber));
  const { element } = plot;
  element.classList.add('mg-runchart');
  return {
    element,
    /** @param {Chart} chart */
    show(chart) {
      plot.draw(chart.label, tracesOf(chart, element), layoutOf(chart, element));
    },
  };
}

/** @param {Chart} chart @param {HTMLElement} element */
function tracesOf({ curves }, element) {
  return curves.map(({ name, steps, values, colour, width, dash = 'solid' }) => ({
    type: 'scatter',
    mode: steps.length > 40 ? 'lines' : 'lines+markers',
    name,
    x: steps.map(placeOf),
    y: values,
    line: { color: colourOf(element, colour), width, dash },
    marker: { color: colourOf(element, colour), size: width + 3 },
    customdata: steps.map((step, index) => `${name} · ${step.toLocaleString('en')} · ${written(values[index])}`),
    hovertemplate: '%{customdata}<extra></extra>',
  }));
}

/** @param {Chart} chart @param {HTMLElement} element */
function layoutOf({ curves, step, steps, range, legend }, element) {
  const last = Math.max(...curves.flatMap((curve) => curve.steps), LINEAR);
  const ticks = TICKS.filter((tick) => tick <= last);
  const line = { type: 'line', yref: 'paper', y0: 0, y1: 1, layer: 'below', line: { color: colourOf(element, '--mg-accent'), width: 2 } };
  return {
    margin: { l: 46, r: 14, t: legend ? 30 : 10, b: 40 },
    showlegend: legend,
    legend: { orientation: 'h', x: 0, y: 1.02, yanchor: 'bottom', font: { color: colourOf(element, '--mg-text') } },
    xaxis: {
      range: [placeOf(0) - 0.05, placeOf(last) + 0.05],
      tickvals: ticks.map(placeOf),
      ticktext: ticks.map((tick) => tick.toLocaleString('en')),
      title: { text: steps, standoff: 6 },
      zeroline: false,
      fixedrange: true,
    },
    yaxis: {
      zeroline: false,
      fixedrange: true,
      rangemode: range === 'zero' ? 'tozero' : 'normal',
      ...(range === 'share' ? { range: [0, 1.02] } : {}),
      nticks: 6,
    },
    shapes: step === null ? [] : [{ ...line, x0: placeOf(step), x1: placeOf(step) }],
  };
}
