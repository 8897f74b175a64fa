/**
 * The menu that saves what a panel shows: pictures are drawn here, exact numbers come from the server.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').Host} Host
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {'png' | 'svg' | 'csv' | 'npz' | 'json' | 'html'} Format
 */
import { make, mark, say } from './dom.js';
import { readFile } from './decode.js';
import { choiceOf } from './link.js';
import { drawGrid, drawHead, sceneOf } from './picture.js';
import { fileName, save } from './save.js';
import { pixelsOf, textOf } from './svg.js';

/** Pixels of a PNG for each unit of a drawing. */
const SHARPNESS = 2;
/** @type {Readonly<Record<'head' | 'all', Format[]>>} */
const FORMATS = { head: ['png', 'svg', 'csv'], all: ['png', 'svg', 'html', 'npz', 'json'] };
const DRAWN = ['png', 'svg'];

/**
 * @param {import('./state.js').Store} store
 * @param {() => Translate} words
 * @param {Host} host
 * @param {'head' | 'all'} what The chosen head, or all of them.
 * @returns {{menu: HTMLElement, status: HTMLElement, update: import('./types.js').View['update']}}
 */
export function exportMenu(store, words, host, what) {
  const summary = make('summary', 'mg-small');
  const list = make('div', 'mg-menu');
  const menu = make('details', 'mg-export', {}, [summary, list]);
  const status = make('p', 'mg-saved', { role: 'status' });
  // Without a server only what is drawn here can be had.
  const formats = FORMATS[what].filter((format) => DRAWN.includes(format) || host.server.export_file !== undefined);
  const buttons = formats.map((format) => {
    const button = make('button', '', { type: 'button' });
    button.addEventListener('click', () => {
      menu.open = false;
      summary.focus();
      void run(format);
    });
    return list.appendChild(button);
  });
  closing(menu, summary);

  /** @param {Format} format */
  async function run(format) {
    const { state } = store;
    const { analysis, layer, head } = state;
    if (analysis === null) {
      return;
    }
    say(status, words()('export_working'));
    try {
      const { name, blob } = DRAWN.includes(format)
        ? await drawn(state, words(), modelName(host, analysis, words()), what, format)
        : await fromServer(host, state, analysis, format);
      save(name, blob);
      say(status, words()('export_saved', { name }));
    } catch (error) {
      const sentences = error instanceof Refusal ? error.sentences : {};
      say(status, sentences[state.language] ?? words()('export_failed', { head: `L${layer}H${head}` }));
    }
  }

  return {
    menu,
    status,
    update(_state, changed) {
      if (changed.has('language')) {
        say(summary, words()('export'));
        mark(summary, 'aria-label', words()(`export_${what}`));
        buttons.forEach((button, index) => say(button, words()(`export_${formats[index]}`)));
        say(status, '');
      }
      if (changed.has('analysis')) {
        say(status, '');
      }
    },
  };
}

/** What the server answers instead of a file. */
class Refusal extends Error {
  /** @param {Record<string, string>} sentences One for each language. */
  constructor(sentences) {
    super(sentences.en);
    this.sentences = sentences;
  }
}

/**
 * Close a menu that nobody looks at any more.
 *
 * @param {HTMLDetailsElement} menu
 * @param {HTMLElement} summary
 */
function closing(menu, summary) {
  menu.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && menu.open) {
      event.stopPropagation();
      menu.open = false;
      summary.focus();
    }
  });
  menu.addEventListener('focusout', (event) => {
    if (event.relatedTarget instanceof Node && !menu.contains(event.relatedTarget)) {
      menu.open = false;
    }
  });
  document.addEventListener('pointerdown', (event) => {
    if (event.target instanceof Node && !menu.contains(event.target)) {
      menu.open = false;
    }
  });
}

/**
 * What a model is called in a file: a model of the visitor's own has a secret for a name.
 *
 * @param {Host} host
 * @param {Analysis} analysis
 * @param {Translate} words
 * @returns {string}
 */
function modelName(host, analysis, words) {
  const { name } = analysis.checkpoint;
  return (host.props.models ?? []).includes(name) ? name : words('export_own_model');
}

/**
 * @param {Readonly<State>} state
 * @param {Translate} words
 * @param {string} model
 * @param {'head' | 'all'} what
 * @param {Format} format
 * @returns {Promise<{name: string, blob: Blob}>}
 */
async function drawn(state, words, model, what, format) {
  const scene = sceneOf(state, words, model);
  const drawing = scene === null ? null : what === 'head' ? drawHead(scene) : drawGrid(scene);
  if (drawing === null) {
    throw new Error('There is nothing to draw yet.');
  }
  const part = what === 'head' ? `L${state.layer}H${state.head}` : 'heads';
  const blob = format === 'png' ? await pixelsOf(drawing, SHARPNESS) : new Blob([textOf(drawing)], { type: 'image/svg+xml' });
  return { name: `minigpt-${fileName(model)}-${part}.${format}`, blob };
}

/**
 * @param {Host} host
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @param {Format} format
 * @returns {Promise<{name: string, blob: Blob}>}
 */
async function fromServer(host, state, analysis, format) {
  const { layer, head, language } = state;
  const wanted = { format, layer, head, language, choice: choiceOf(state) };
  const ids = [...analysis.cropped, ...analysis.ids];
  const message = await host.server.export_file(analysis.checkpoint.name, ids, analysis.promptLength, wanted);
  if (message?.kind !== 'file') {
    throw new Refusal(message?.sentences ?? {});
  }
  return readFile(message);
}
