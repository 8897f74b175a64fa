/**
 * The logit lens: a cell for every layer and position, with what the model would say if it stopped there. A click chooses the token.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 *
 * @typedef {object} Lens  Rows are the embeddings, then every layer.
 * @property {number[][]} top
 * @property {number[][]} top_probability
 * @property {number[]} final
 * @property {number[][]} final_probability
 * @property {number[][]} kl
 * @property {Record<string, string>} pieces
 */
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { labelled } from './axis.js';
import { chooser } from './chooser.js';
import { plotlyScale } from './colours.js';
import { largest } from './diverging.js';
import { make, say } from './dom.js';
import { colourOf } from './figure.js';
import { digits, escapeForPlotly, glyph, named, shortGlyph } from './glyphs.js';
import { plotView } from './plot.js';
import { chosenToken } from './state.js';

const SHOWN = /** @type {const} */ (['final', 'top', 'kl']);
/** A cell narrower than this has no room for a token. */
const ROOM = 16;
const LABEL = 14;
/** Most tokens that are written below the map. */
const MOST_LABELS = 64;

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function lensView({ store, words, host }) {
  /** @type {typeof SHOWN[number]} */
  let shown = 'final';
  const choice = chooser(SHOWN, (name) => {
    shown = name;
    show(store.state);
  });
  const hint = make('p', 'mg-hint');
  const status = make('p', 'mg-status', { role: 'status' });
  const chart = plotView(340, ({ x }) => store.set({ token: Math.round(x) }));
  const reading = make('ol', 'mg-lens-reading');
  const element = make('div', 'mg-swept', {}, [make('div', 'mg-inline', {}, [choice.element]), hint, status, chart.element, reading]);
  /** @type {Asking<Lens>} */
  const asking = new Asking(host, 'lens', () => show(store.state));

  /** @param {Readonly<State>} state */
  function show(state) {
    const { analysis, theme, language } = state;
    const translate = words();
    const position = chosenToken(state);
    choice.name(translate('lens_colour'), (name) => translate(`lens_${name}`));
    choice.show(shown);
    say(hint, translate('lens_hint'));
    say(status, statusOf(translate, asking, language));
    const { value } = asking;
    chart.element.hidden = value === null;
    reading.hidden = value === null;
    if (value === null || analysis === null || position === null) {
      return;
    }
    const { start } = analysis;
    const z = shown === 'kl' ? value.kl : shown === 'top' ? value.top_probability : value.final_probability;
    const time = z[0].length;
    const names = z.map((_, point) => (point === 0 ? translate('lens_embeddings') : translate('lens_after', { layer: point - 1 })));
    const customdata = value.top.map((row, point) => row.map((id, index) => {
      const [says, end] = [id, value.final[index]].map((each) => `'${glyph(value.pieces[each])}'`);
      const about = { point: names[point], token: named(analysis.token(start + index), start + index), says, end };
      const chances = { probability: digits(value.top_probability[point][index]), final: digits(value.final_probability[point][index]) };
      return escapeForPlotly(translate('lens_cell', { ...about, ...chances, bits: value.kl[point][index].toFixed(2) }));
    }));
    const room = (chart.element.clientWidth - 130) / time;
    const text = room < ROOM ? undefined : value.top.map((row) => row.map((id) => escapeForPlotly(shortGlyph(value.pieces[id], Math.max(2, Math.floor(room / 9))))));
    const places = labelled(start, start + time - 1, Math.max(2, Math.floor((chart.element.clientWidth - 130) / LABEL)), MOST_LABELS);
    const line = { color: colourOf(chart.element, '--mg-accent'), width: 2 };
    chart.draw(
      translate('lens_chart', { shown: translate(`lens_${shown}`) }),
      [{
        type: 'heatmap', z, x0: start, dx: 1, zmin: 0, zmax: shown === 'kl' ? largest(z.flat()) : 1,
        colorscale: plotlyScale(theme, 'linear', 1), customdata, hovertemplate: '%{customdata}<extra></extra>',
        ...(text === undefined ? {} : { text, texttemplate: '%{text}' }),
        colorbar: { thickness: 10, outlinewidth: 0 },
      }],
      {
        margin: { l: 110, r: 10, t: 10, b: 50 },
        xaxis: { tickvals: places, ticktext: places.map((place) => escapeForPlotly(shortGlyph(analysis.token(place), 4))), showgrid: false, zeroline: false },
        yaxis: { tickvals: names.map((_, index) => index), ticktext: names, autorange: 'reversed', showgrid: false, zeroline: false },
        shapes: [{ type: 'rect', x0: position - 0.5, x1: position + 0.5, y0: -0.5, y1: names.length - 0.5, line }],
      },
    );
    const index = Math.min(position - start, time - 1);
    reading.replaceChildren(...value.top.map((row, point) => {
      const chip = make('span', 'mg-chip', {}, [glyph(value.pieces[row[index]])]);
      return make('li', '', {}, [make('span', 'mg-place', {}, [names[point]]), chip, ' ', make('span', 'mg-number', {}, [digits(value.top_probability[point][index])])]);
    }));
  }

  return {
    element,
    update(state) {
      const { analysis } = state;
      if (analysis !== null && !isWriting(state)) {
        asking.ask(aboutOf(analysis), {});
      }
      show(state);
    },
  };
}
