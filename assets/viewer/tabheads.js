/**
 * The tab "Heads": which head does what. A table of all heads and scores, each beside the same score of an untrained model, to be sorted;
 * a score as the badge of every thumbnail; any two scores as a scatter.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 *
 * @typedef {object} HeadTable
 * @property {'text' | 'probe'} source
 * @property {string[]} names
 * @property {Record<string, (number | null)[][]>} scores
 * @property {Record<string, (number | null)[][]>} untrained
 * @property {Record<string, number>} counted
 */
import { aboutOf, Asking, isWriting, statusOf } from './asking.js';
import { chooser } from './chooser.js';
import { make, mark, say } from './dom.js';
import { colourOf } from './figure.js';
import { picker } from './picker.js';
import { plotView } from './plot.js';

const SOURCES = /** @type {const} */ (['text', 'probe']);
/** Scores that are no shares of attention. */
const OPEN_ENDED = ['entropy', 'distance'];

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function headsTab({ store, words, host }) {
  /** @type {'text' | 'probe'} */
  let source = 'text';
  let order = { by: 'head', down: false };
  const axes = { x: 'previous', y: 'induction' };

  const sources = chooser(SOURCES, (value) => {
    source = value;
    follow(store.state);
  });
  const badge = picker((name) => store.set({ badge: name === '' ? null : badgeOf(name) }));
  const controls = make('div', 'mg-inline', {}, [sources.element, badge.element]);
  const status = make('p', 'mg-status', { role: 'status' });
  const about = make('p', 'mg-hint');
  const head = make('tr');
  const body = make('tbody');
  const table = make('table', 'mg-head-table', {}, [make('thead', '', {}, [head]), body]);
  const scroller = make('div', 'mg-scroll mg-head-scroll', { tabindex: '0', role: 'region' }, [table]);
  const pickX = picker((name) => scatterBy('x', name));
  const pickY = picker((name) => scatterBy('y', name));
  const scatter = plotView(380, ({ pointNumber }) => {
    const { heads } = store.state.analysis ?? { heads: 1 };
    store.set({ layer: Math.floor(pointNumber / heads), head: pointNumber % heads });
  });
  const legend = make('p', 'mg-legend', {}, [make('span', 'mg-key mg-key-trained'), make('span', 'mg-key mg-key-untrained')]);
  const scatterPart = make('div', 'mg-swept', {}, [make('div', 'mg-inline', {}, [pickY.element, pickX.element]), legend, scatter.element]);
  const tablePart = make('div', 'mg-swept', {}, [about, scroller]);
  const found = make('div', 'mg-heads', {}, [tablePart, scatterPart]);
  const element = make('div', 'mg-swept', {}, [controls, status, found]);

  /** @type {Asking<HeadTable>} */
  const asking = new Asking(host, 'heads', () => {
    const { badge: shown } = store.state;
    if (shown !== null && asking.value !== null && shown.source === asking.value.source) {
      store.set({ badge: badgeOf(shown.name) });
    }
    show(store.state);
  });

  /** @param {string} name */
  const badgeOf = (name) => ({ name, source, values: asking.value?.source === source ? (asking.value.scores[name] ?? null) : null });

  /** @param {'x' | 'y'} which @param {string} name */
  function scatterBy(which, name) {
    axes[which] = name;
    show(store.state);
  }

  /** @param {Readonly<State>} state */
  function follow(state) {
    const { analysis } = state;
    if (analysis !== null && !isWriting(state)) {
      // The probe is the same for every text of a model.
      const asked = aboutOf(analysis);
      asking.ask(source === 'probe' ? { ...asked, ids: [0] } : asked, { source });
    }
    show(state);
  }

  /** @param {Readonly<State>} state */
  function show(state) {
    const translate = words();
    sources.name(translate('heads_source'), (value) => translate(`heads_${value}`));
    sources.show(source);
    say(about, translate(`heads_${source}_about`));
    const value = asking.value?.source === source ? asking.value : null;
    say(status, value === null ? statusOf(translate, asking, state.language) : '');
    found.hidden = value === null;
    badge.element.hidden = value === null;
    if (value === null) {
      return;
    }
    /** @param {string} name */
    const named = (name) => translate(`score_${name}`);
    badge.show(translate('heads_badge'), [['', translate('heads_badge_strongest')], ...value.names.map((name) => [name, named(name)])], state.badge?.name ?? '');
    for (const which of /** @type {const} */ (['x', 'y'])) {
      if (!value.names.includes(axes[which])) {
        axes[which] = value.names[0];
      }
    }
    const options = value.names.map((name) => [name, named(name)]);
    pickX.show(translate('heads_across'), options, axes.x);
    pickY.show(translate('heads_up'), options, axes.y);
    writeHead(value, translate);
    writeBody(value, state, translate);
    draw(value, state);
  }

  /** @param {HeadTable} value @param {import('./types.js').Translate} translate */
  function writeHead({ names }, translate) {
    mark(table, 'aria-label', translate('heads_table'));
    mark(scroller, 'aria-label', translate('heads_table'));
    const columns = ['head', ...names];
    while (head.children.length > columns.length) {
      head.lastElementChild?.remove();
    }
    while (head.children.length < columns.length) {
      const button = make('button', 'mg-sort', { type: 'button' });
      const index = head.children.length;
      button.addEventListener('click', () => {
        const by = button.dataset.by ?? 'head';
        order = { by, down: order.by === by ? !order.down : by !== 'head' };
        show(store.state);
      });
      head.append(make('th', index === 0 ? '' : 'mg-right', { scope: 'col' }, [button]));
    }
    columns.forEach((name, index) => {
      const heading = /** @type {HTMLElement} */ (head.children[index]);
      const button = /** @type {HTMLElement} */ (heading.firstElementChild);
      button.dataset.by = name;
      say(button, name === 'head' ? translate('heads_head') : translate(`score_${name}`));
      mark(button, 'title', name === 'head' ? '' : translate(`about_${name}`));
      mark(heading, 'aria-sort', order.by !== name ? 'none' : order.down ? 'descending' : 'ascending');
    });
  }

  /** @param {HeadTable} value @param {Readonly<State>} state @param {import('./types.js').Translate} translate */
  function writeBody({ names, scores, untrained }, { layer: chosenLayer, head: chosenHead }, translate) {
    const rows = scores[names[0]].flatMap((row, layer) => row.map((_, index) => ({ layer, head: index })));
    const by = scores[order.by];
    if (by !== undefined) {
      rows.sort((a, b) => (by[a.layer][a.head] ?? -1) - (by[b.layer][b.head] ?? -1));
    }
    if (order.down) {
      rows.reverse();
    }
    const focused = document.activeElement instanceof HTMLElement && body.contains(document.activeElement) ? document.activeElement.textContent : null;
    body.replaceChildren(...rows.map(({ layer, head: index }) => {
      const name = `L${layer}H${index}`;
      const pressed = layer === chosenLayer && index === chosenHead;
      const button = make('button', 'mg-step', { type: 'button', 'aria-pressed': String(pressed), 'aria-label': translate('heads_choose', { name }) }, [name]);
      const cells = names.map((score) => {
        const own = scores[score][layer][index];
        const other = untrained[score][layer][index];
        const number = make('span', 'mg-number', {}, [written(own)]);
        const before = make('span', 'mg-untrained', {}, [written(other)]);
        const cell = make('td', 'mg-right', {}, [number, ' ', before]);
        if (!OPEN_ENDED.includes(score)) {
          cell.style.setProperty('--share', String(own ?? 0));
          cell.classList.add('mg-shaded');
        }
        return cell;
      });
      const row = make('tr', pressed ? 'mg-chosen' : '', {}, [make('th', '', { scope: 'row' }, [button]), ...cells]);
      row.addEventListener('click', () => store.set({ layer, head: index }));
      return row;
    }));
    if (focused !== null) {
      Array.from(body.querySelectorAll('button')).find((button) => button.textContent === focused)?.focus({ preventScroll: true });
    }
  }

  /** @param {HeadTable} value @param {Readonly<State>} state */
  function draw({ scores, untrained }, { layer, head: chosen, analysis }) {
    const translate = words();
    const [legendTrained, legendUntrained] = /** @type {HTMLElement[]} */ (Array.from(legend.children));
    say(legendTrained, translate('heads_trained'));
    say(legendUntrained, translate('heads_untrained'));
    const heads = analysis?.heads ?? 1;
    const titles = [translate(`score_${axes.x}`), translate(`score_${axes.y}`)];
    /** @param {Record<string, (number | null)[][]>} of @param {string} name @param {object} marker */
    const trace = (of, name, marker) => {
      const [x, y] = [of[axes.x].flat(), of[axes.y].flat()];
      const customdata = x.map((across, index) =>
        `L${Math.floor(index / heads)}H${index % heads}${name}: ${titles[0]} ${written(across)}, ${titles[1]} ${written(y[index])}`);
      return { type: 'scatter', mode: 'markers', x, y, marker, customdata, hovertemplate: '%{customdata}<extra></extra>' };
    };
    const [accent, up, down] = ['--mg-accent', '--mg-up', '--mg-down'].map((name) => colourOf(scatter.element, name));
    const index = layer * heads + chosen;
    const sizes = scores[axes.x].flat().map((_, place) => (place === index ? 15 : 10));
    const rims = sizes.map((size) => ({ colour: size === 15 ? accent : up, width: size === 15 ? 3 : 0 }));
    const line = { color: rims.map(({ colour }) => colour), width: rims.map(({ width }) => width) };
    scatter.draw(
      translate('heads_scatter', { x: titles[0], y: titles[1] }),
      [
        trace(scores, '', { color: up, size: sizes, line }),
        trace(untrained, ` (${translate('heads_untrained')})`, { color: down, size: 7, symbol: 'circle-open' }),
      ],
      { xaxis: { title: { text: titles[0] }, rangemode: 'tozero' }, yaxis: { title: { text: titles[1] }, rangemode: 'tozero' } },
    );
  }

  return { element, update: (state) => follow(state) };
}

/** @param {number | null} value */
function written(value) {
  return value === null ? '–' : value.toFixed(2);
}
