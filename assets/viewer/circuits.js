/**
 * What the chosen head is wired to do, read from its parameters alone: which tokens it prefers, what it pushes, which positions it prefers.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 *
 * @typedef {object} Circuit
 * @property {'qk' | 'ov'} kind
 * @property {number[]} rows  Ids.
 * @property {number[][] | null} matrix
 * @property {number[][]} top
 * @property {number[][]} top_value
 * @property {number[][]} bottom
 * @property {number[][]} bottom_value
 * @property {Record<string, string>} pieces
 *
 * @typedef {{kind: 'position', pattern: number[][]}} Positions
 */
import { aboutOf, Asking, statusOf } from './asking.js';
import { chooser } from './chooser.js';
import { plotlyScale } from './colours.js';
import { divergingScale, largest, signed } from './diverging.js';
import { make, mark, say } from './dom.js';
import { digits, escapeForPlotly, glyph, shortGlyph } from './glyphs.js';
import { plotView } from './plot.js';

const KINDS = /** @type {const} */ (['qk', 'ov', 'position']);

/**
 * What has to be said where not everything is drawn.
 *
 * @param {Readonly<State>} state
 * @param {Circuit | Positions | null} value
 * @param {Translate} translate
 * @returns {string[]}
 */
export function partDrawn({ analysis }, value, translate) {
  if (analysis === null || value === null) {
    return [];
  }
  const { block_size: all, vocab_size: vocab } = analysis.checkpoint;
  if (value.kind === 'position') {
    const count = value.pattern.length;
    return count < all ? [translate('circuit_position_first', { count, all })] : [];
  }
  const distinct = new Set(analysis.ids).size;
  return value.matrix === null ? [translate('circuit_rows_of_text', { vocab, rows: value.rows.length, distinct })] : [];
}

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function circuitsView({ store, words, host }) {
  /** @type {typeof KINDS[number]} */
  let kind = 'qk';
  const choice = chooser(KINDS, (name) => {
    kind = name;
    follow(store.state);
  });
  const title = make('h3', 'mg-subtitle');
  const caveat = make('p', 'mg-caveat');
  const status = make('p', 'mg-status', { role: 'status' });
  const chart = plotView(620);
  const body = make('tbody');
  const headings = [make('th', '', { scope: 'col' }), make('th', '', { scope: 'col' }), make('th', '', { scope: 'col' })];
  const table = make('table', 'mg-head-table', {}, [make('thead', '', {}, [make('tr', '', {}, headings)]), body]);
  const strongest = make('div', 'mg-scroll mg-head-scroll', { tabindex: '0', role: 'region' }, [table]);
  const pictures = make('div', 'mg-circuits', {}, [chart.element, strongest]);
  const element = make('div', 'mg-swept', {}, [make('div', 'mg-inline', {}, [choice.element]), title, caveat, status, pictures]);
  /** @type {Asking<Circuit | Positions>} */
  const asking = new Asking(host, 'circuit', () => show(store.state));

  /** @param {Readonly<State>} state */
  function follow(state) {
    const { analysis, layer, head } = state;
    if (analysis !== null) {
      // Of a small vocabulary nothing depends on the text.
      const about = aboutOf(analysis);
      const small = kind === 'position' || analysis.checkpoint.vocab_size <= 128;
      asking.ask(small ? { ...about, ids: [0] } : about, { layer, head, kind });
    }
    show(state);
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const translate = words();
    const { language, theme } = state;
    const value = asking.value?.kind === kind ? asking.value : null;
    // While another head is waited for, the title stays with the picture that is there.
    const { layer, head } = value === null ? state : asking.options;
    const name = `L${layer}H${head}`;
    choice.name(translate('circuit'), (each) => translate(`circuit_${each}`));
    choice.show(kind);
    say(title, translate(`circuit_${kind}_title`, { name }));
    say(caveat, [translate(`circuit_${kind}_about`), ...partDrawn(state, value, translate), translate('circuit_caveat')].join(' '));
    say(status, statusOf(translate, asking, language));
    pictures.hidden = value === null;
    pictures.classList.toggle('mg-waits', asking.isWaiting);
    if (value === null) {
      return;
    }
    strongest.hidden = value.kind === 'position';
    if (value.kind === 'position') {
      chart.element.hidden = false;
      drawPositions(value, translate, theme, name);
      return;
    }
    chart.element.hidden = value.matrix === null;
    if (value.matrix !== null) {
      drawMatrix(value, value.matrix, translate, theme, name);
    }
    mark(strongest, 'aria-label', translate('circuit_strongest', { name }));
    headings.forEach((heading, index) => say(heading, translate(['circuit_row', 'circuit_most', 'circuit_least'][index])));
    /** @param {number[]} ids @param {number[]} numbers */
    const chips = (ids, numbers) => ids.slice(0, 6).map((id, index) =>
      make('span', 'mg-chip mg-listed', { title: signed(numbers[index]) }, [glyph(value.pieces[id])]));
    body.replaceChildren(...value.rows.map((id, row) => make('tr', '', {}, [
      make('th', '', { scope: 'row' }, [make('span', 'mg-chip', {}, [glyph(value.pieces[id])])]),
      make('td', '', {}, chips(value.top[row], value.top_value[row])),
      make('td', '', {}, chips(value.bottom[row], value.bottom_value[row])),
    ])));
  }

  /**
   * @param {Circuit} value
   * @param {number[][]} z
   * @param {Translate} translate
   * @param {import('./types.js').Theme} theme
   * @param {string} name
   */
  function drawMatrix({ rows, pieces }, z, translate, theme, name) {
    const texts = z[0].map((_, id) => pieces[id]);
    const most = largest(z.flat());
    const customdata = z.map((row, index) => row.map((score, id) =>
      escapeForPlotly(translate(`circuit_${kind}_cell`, { row: `'${glyph(pieces[rows[index]])}'`, column: `'${glyph(texts[id])}'`, value: signed(score) }))));
    const ticks = { ticktext: texts.map((text) => escapeForPlotly(shortGlyph(text, 4))), tickvals: texts.map((_, index) => index), tickfont: { size: 9 }, showgrid: false, zeroline: false };
    const data = { type: 'heatmap', z, zmin: -most, zmax: most, colorscale: divergingScale(theme), customdata, hovertemplate: '%{customdata}<extra></extra>', colorbar: { thickness: 10, outlinewidth: 0 } };
    chart.draw(translate(`circuit_${kind}_title`, { name }), [data], {
      margin: { l: 60, r: 10, t: 50, b: 10 },
      xaxis: { ...ticks, side: 'top', tickangle: 0, title: { text: translate(`circuit_${kind}_columns`) } },
      yaxis: { ...ticks, autorange: 'reversed', title: { text: translate(`circuit_${kind}_rows`) } },
    });
  }

  /** @param {Positions} value @param {Translate} translate @param {import('./types.js').Theme} theme @param {string} name */
  function drawPositions({ pattern }, translate, theme, name) {
    const z = pattern.map((row) => [...row, ...Array.from({ length: pattern.length - row.length }, () => null)]);
    const customdata = z.map((row, query) => row.map((weight, key) =>
      (weight === null ? '' : translate('circuit_position_cell', { query, key, weight: digits(weight) }))));
    const data = { type: 'heatmap', z, zmin: 0, zmax: 1, colorscale: plotlyScale(theme, 'sqrt', 1), customdata, hovertemplate: '%{customdata}<extra></extra>', hoverongaps: false, colorbar: { thickness: 10, outlinewidth: 0 } };
    chart.draw(translate('circuit_position_title', { name }), [data], {
      margin: { l: 60, r: 10, t: 50, b: 10 },
      xaxis: { side: 'top', title: { text: translate('circuit_position_columns') }, showgrid: false, zeroline: false },
      yaxis: { autorange: 'reversed', title: { text: translate('circuit_position_rows') }, showgrid: false, zeroline: false },
    });
  }

  return { element, update: (state) => follow(state) };
}
