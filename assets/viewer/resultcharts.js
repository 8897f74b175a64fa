/**
 * The runs of an experiment, drawn by Plotly: each run's loss as a dot, and the losses on the way with their spread. Variants
 * differ by colour and by shape, and what is said about a point is in the page's language.
 *
 * @typedef {import('./types.js').Results} Results
 * @typedef {import('./types.js').Translate} Translate
 */
import { colourOf } from './figure.js';
import { plotView } from './plot.js';

const HEIGHT = 300;
const COLOURS = ['--mg-up', '--mg-down', '--mg-generated', '--mg-text'];
const SYMBOLS = ['circle', 'square', 'diamond', 'triangle-up', 'cross'];
const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'];
/** The share of the steps that counts as the beginning. */
const LATE = 0.2;
const HOVER = '%{customdata}<extra></extra>';

/**
 * The look of a variant, by its place.
 *
 * @param {HTMLElement} element
 * @param {number} index
 */
function lookOf(element, index) {
  return { colour: colourOf(element, COLOURS[index % COLOURS.length]), symbol: SYMBOLS[index % SYMBOLS.length], dash: DASHES[index % DASHES.length] };
}

/** Text that Plotly takes for no markup. @param {string} text */
function plain(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('$', '&#36;');
}

/** Every run as a dot above its variant, the runs of one seed joined, and the means. */
export function runsChart() {
  const plot = plotView(HEIGHT);
  const { element } = plot;
  return {
    element,
    /** @param {Results} results @param {Translate} translate */
    show({ rows, seeds }, translate) {
      const seedLines = seeds.map((_, index) => ({
        type: 'scatter',
        mode: 'lines',
        x: rows.map((_row, place) => place),
        y: rows.map(({ losses }) => losses[index]),
        line: { color: colourOf(element, '--mg-control'), width: 1 },
        hoverinfo: 'skip',
      }));
      const runs = rows.map(({ variant, losses }, place) => ({
        type: 'scatter',
        mode: 'markers',
        x: losses.map(() => place),
        y: losses,
        marker: { color: lookOf(element, place).colour, symbol: lookOf(element, place).symbol, size: 10 },
        customdata: losses.map((loss, index) => plain(translate('experiments_run', { variant, seed: seeds[index], loss: loss.toFixed(4) }))),
        hovertemplate: HOVER,
      }));
      const means = rows.map(({ variant, mean }, place) => ({
        type: 'scatter',
        mode: 'lines',
        x: [place - 0.22, place, place + 0.22],
        y: [mean, mean, mean],
        line: { color: lookOf(element, place).colour, width: 4 },
        customdata: Array(3).fill(plain(translate('experiments_mean', { variant, seeds: seeds.length, loss: mean.toFixed(4) }))),
        hovertemplate: HOVER,
      }));
      plot.draw(translate('experiments_about_runs'), [...seedLines, ...means, ...runs], {
        margin: { l: 64, r: 14, t: 12, b: 40 },
        xaxis: {
          range: [-0.5, rows.length - 0.5],
          tickvals: rows.map((_, place) => place),
          ticktext: rows.map(({ variant }) => plain(variant)),
          zeroline: false,
          showgrid: false,
          fixedrange: true,
        },
        yaxis: { title: { text: translate('experiments_loss_axis'), standoff: 8 }, zeroline: false, fixedrange: true, nticks: 6 },
      });
    },
  };
}

/** The losses on the way: for each variant the mean over its runs, and from the lowest to the highest of them as a band. */
export function wayChart() {
  const plot = plotView(HEIGHT);
  const { element } = plot;
  return {
    element,
    /** @param {Results} results @param {Translate} translate */
    show(results, translate) {
      const traces = results.rows.flatMap(({ variant }, place) => {
        const look = lookOf(element, place);
        const points = pointsOf(results, variant);
        const steps = points.map(({ step }) => step);
        const edge = { type: 'scatter', mode: 'lines', x: steps, line: { width: 0 }, hoverinfo: 'skip', showlegend: false };
        return [
          { ...edge, y: points.map(({ low }) => low) },
          { ...edge, y: points.map(({ high }) => high), fill: 'tonexty', fillcolor: see(look.colour) },
          {
            type: 'scatter',
            mode: 'lines+markers',
            name: plain(variant),
            x: steps,
            y: points.map(({ mean }) => mean),
            line: { color: look.colour, width: 2.5, dash: look.dash },
            marker: { color: look.colour, symbol: look.symbol, size: 7 },
            customdata: points.map(({ step, mean, low, high }) =>
              plain(translate('experiments_point', { variant, step: step.toLocaleString('en'), loss: mean.toFixed(4), low: low.toFixed(4), high: high.toFixed(4) })),
            ),
            hovertemplate: HOVER,
          },
        ];
      });
      plot.draw(translate('experiments_about_curves'), traces, {
        margin: { l: 64, r: 14, t: 34, b: 40 },
        showlegend: true,
        legend: { orientation: 'h', x: 0, y: 1.02, yanchor: 'bottom', traceorder: 'normal', font: { color: colourOf(element, '--mg-text') } },
        xaxis: { title: { text: translate('experiments_steps'), standoff: 6 }, zeroline: false, fixedrange: true, nticks: 6 },
        yaxis: { title: { text: translate('experiments_loss_axis'), standoff: 8 }, range: lateRange(results), zeroline: false, fixedrange: true, nticks: 6 },
      });
    },
  };
}

/**
 * The range of losses after the steep beginning, in which all variants look alike.
 *
 * @param {Results} results
 * @returns {[number, number]}
 */
function lateRange(results) {
  const points = results.rows.flatMap(({ variant }) => pointsOf(results, variant));
  const last = Math.max(...points.map(({ step }) => step));
  const late = points.filter(({ step }) => step >= LATE * last);
  const [low, high] = [Math.min(...late.map((point) => point.low)), Math.max(...late.map((point) => point.high))];
  const room = Math.max((high - low) / 20, 0.01);
  return [low - room, high + room];
}

/** The same colour, seen through. @param {string} colour Six hexadecimal digits. */
function see(colour) {
  return `${colour}2e`;
}

/**
 * Mean, lowest and highest loss of a variant at each step that all its counted runs were measured at.
 *
 * @param {Results} results
 * @param {string} variant
 */
function pointsOf({ curves, seeds }, variant) {
  const runs = curves.filter((curve) => curve.variant === variant && seeds.includes(curve.seed));
  const steps = runs[0].steps.filter((step) => runs.every((run) => run.steps.includes(step)));
  return steps.map((step) => {
    const losses = runs.map((run) => run.losses[run.steps.indexOf(step)]);
    return { step, mean: losses.reduce((sum, loss) => sum + loss, 0) / losses.length, low: Math.min(...losses), high: Math.max(...losses) };
  });
}
