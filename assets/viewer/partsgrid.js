/**
 * The parts of the model as a small grid of switches: a row for each layer with its heads, its attention as a whole and its
 * feed-forward network. What is pressed is changed.
 *
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./types.js').View} View
 * @typedef {import('./types.js').WhatIf} WhatIf
 * @typedef {import('./state.js').Store} Store
 */
import { make, mark } from './dom.js';
import { includes, toggled, wholeLayer } from './whatif.js';

/**
 * @param {Store} store
 * @param {() => Translate} words
 * @returns {View}
 */
export function partsGrid(store, words) {
  const element = make('div', 'mg-parts', { role: 'group' });
  /** @type {{button: HTMLButtonElement, isOn: (whatIf: WhatIf) => boolean, name: () => string}[]} */
  let switches = [];
  let built = '';

  /** @param {Partial<WhatIf>} patch */
  const change = (patch) => store.set({ whatIf: { ...store.state.whatIf, ...patch } });

  /** @param {string} text @param {() => string} name @param {(whatIf: WhatIf) => boolean} isOn @param {() => void} press */
  function add(text, name, isOn, press) {
    const button = make('button', 'mg-part', { type: 'button' }, [text]);
    button.addEventListener('click', press);
    switches.push({ button, isOn, name });
    element.append(button);
    return button;
  }

  /** @param {import('./decode.js').Analysis} analysis */
  function build({ layers, heads, checkpoint }) {
    const hasMlps = checkpoint.kind === 'transformer';
    element.replaceChildren();
    element.style.setProperty('--columns', String(heads + (hasMlps ? 3 : 2)));
    switches = [];
    for (let layer = 0; layer < layers; layer += 1) {
      const whole = () => words()('whatif_layer', { layer });
      const isWhole = (/** @type {WhatIf} */ whatIf) => whatIf.heads.filter(([other]) => other === layer).length === heads;
      add(`L${layer}`, whole, isWhole, () => change({ heads: wholeLayer(store.state.whatIf, layer, heads) })).classList.add('mg-part-layer');
      for (let head = 0; head < heads; head += 1) {
        const name = `L${layer}H${head}`;
        const press = () => change({ heads: toggled(store.state.whatIf.heads, [layer, head]) });
        add(`H${head}`, () => words()('whatif_head', { name }), (whatIf) => includes(whatIf.heads, [layer, head]), press);
      }
      const attention = () => words()('whatif_attention', { layer });
      add('Attn', attention, (whatIf) => whatIf.attention.includes(layer), () => change({ attention: toggled(store.state.whatIf.attention, layer) })).classList.add('mg-part-wide');
      if (hasMlps) {
        const mlp = () => words()('whatif_mlp', { layer });
        add('MLP', mlp, (whatIf) => whatIf.mlps.includes(layer), () => change({ mlps: toggled(store.state.whatIf.mlps, layer) })).classList.add('mg-part-wide');
      }
    }
  }

  return {
    element,
    update({ analysis, whatIf }) {
      if (analysis === null) {
        return;
      }
      const shape = [analysis.layers, analysis.heads, analysis.checkpoint.kind].join();
      if (shape !== built) {
        build(analysis);
        built = shape;
      }
      mark(element, 'aria-label', words()('whatif_parts'));
      for (const { button, isOn, name } of switches) {
        mark(button, 'aria-pressed', String(isOn(whatIf)));
        mark(button, 'aria-label', name());
        mark(button, 'title', name());
      }
    },
  };
}
