/**
 * The tab "What if": switch parts of the model off, scale heads, hide keys, and see what changes in what it says.
 *
 * @typedef {import('./types.js').View} View
 * @typedef {import('./tabs.js').Tools} Tools
 */
import { chooser } from './chooser.js';
import { make, mark, say, wordButton } from './dom.js';
import { effectsView } from './effects.js';
import { hideKeys } from './hidekeys.js';
import { partsGrid } from './partsgrid.js';
import { sweepView } from './sweep.js';
import { allOthers, isChanged, MODES, NO_CHANGE } from './whatif.js';

/**
 * @param {Tools} tools
 * @returns {View}
 */
export function whatIfTab(tools) {
  const { store, words } = tools;
  const title = make('h3', 'mg-subtitle');
  const mode = chooser(MODES, (value) => store.set({ whatIf: { ...store.state.whatIf, mode: value } }));
  const slider = make('input', 'mg-slider', { type: 'range', min: '0', max: '2', step: '0.05' });
  const factor = make('output', 'mg-number');
  const about = make('p', 'mg-hint');
  const scale = make('label', 'mg-inline mg-factor', {}, [slider, factor]);
  slider.addEventListener('input', () => say(factor, `× ${Number(slider.value).toFixed(2)}`));
  slider.addEventListener('change', () => store.set({ whatIf: { ...store.state.whatIf, factor: Number(slider.value) } }));
  const grid = partsGrid(store, words);
  const only = wordButton('mg-step', () => {
    const { analysis, whatIf } = store.state;
    if (analysis !== null) {
      store.set({ whatIf: { ...whatIf, heads: allOthers(whatIf, analysis) } });
    }
  });
  const reset = wordButton('mg-step', () => store.set({ whatIf: NO_CHANGE }));
  const buttons = make('div', 'mg-inline', {}, [only.element, reset.element]);
  const edges = hideKeys(store, words);
  const controls = make('div', 'mg-whatif-controls', {}, [title, mode.element, about, scale, grid.element, buttons, edges.element]);
  const effects = effectsView(tools);
  const sweep = sweepView(tools);
  const element = make('div', '', {}, [make('div', 'mg-whatif', {}, [controls, effects.element]), sweep.element]);

  return {
    element,
    update(state, changed) {
      const translate = words();
      const { whatIf } = state;
      say(title, translate('whatif_parts'));
      mode.name(translate('whatif_mode'), (value) => translate(`whatif_mode_${value}`));
      mode.show(whatIf.mode);
      about.hidden = whatIf.mode !== 'mean';
      say(about, translate('whatif_mean_about'));
      scale.hidden = whatIf.mode !== 'scale';
      slider.value = String(whatIf.factor);
      mark(slider, 'aria-label', translate('whatif_factor'));
      say(factor, `× ${whatIf.factor.toFixed(2)}`);
      only.name(translate('whatif_only'));
      only.element.disabled = whatIf.heads.length === 0;
      reset.name(translate('whatif_reset'));
      reset.element.disabled = !isChanged(whatIf);
      for (const part of [grid, edges, effects, sweep]) {
        part.update(state, changed);
      }
    },
  };
}
