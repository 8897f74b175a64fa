/**
 * A number for every head and every feed-forward network: a table whose cells are coloured buttons.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 */
import { divergingRamp, largest, signed, signedLevel } from './diverging.js';
import { make, mark, say } from './dom.js';

/** @param {(layer: number, head: number) => void} choose */
export function effectMap(choose) {
  const caption = make('caption');
  const body = make('tbody');
  const head = make('tr');
  const table = make('table', 'mg-effect-map', {}, [caption, make('thead', '', {}, [head]), body]);
  const element = make('div', 'mg-scroll', { tabindex: '0', role: 'region' }, [table]);
  return {
    element,
    /**
     * @param {(number | null)[][]} heads
     * @param {(number | null)[]} mlps
     * @param {{layer: number, head: number, state: Readonly<State>, name: string, translate: Translate, unsigned?: boolean}} about
     */
    show(heads, mlps, { layer: chosenLayer, head: chosenHead, state, name, translate, unsigned = false }) {
      /** @param {number | null} value */
      const number = (value) => (unsigned ? (value ?? 0).toFixed(3) : signed(value));
      say(caption, name);
      mark(element, 'aria-label', name);
      const ramp = divergingRamp(state.theme);
      const most = largest([...heads.flat(), ...mlps]);
      const columns = [...heads[0].map((_, index) => `H${index}`), ...(mlps.length > 0 ? ['MLP'] : [])];
      head.replaceChildren(make('td'), ...columns.map((column) => make('th', '', { scope: 'col' }, [column])));
      /** @param {HTMLElement} inside @param {number | null} value */
      const cell = (inside, value) => {
        const level = signedLevel(value ?? 0, most);
        inside.style.setProperty('--weight', ramp.css[level]);
        inside.style.setProperty('--on-weight', ramp.ink[level]);
        return make('td', '', {}, [inside]);
      };
      const focused = document.activeElement instanceof HTMLElement && body.contains(document.activeElement) ? document.activeElement.dataset.part : null;
      body.replaceChildren(...heads.map((row, layer) => {
        const cells = row.map((value, index) => {
          const part = `L${layer}H${index}`;
          const label = unsigned ? `${part}: ${number(value)}` : translate('sweep_cell', { name: part, change: number(value) });
          const pressed = layer === chosenLayer && index === chosenHead;
          const button = make('button', 'mg-effect', { type: 'button', 'aria-pressed': String(pressed), 'aria-label': label, title: label, 'data-part': part }, [number(value)]);
          button.addEventListener('click', () => choose(layer, index));
          return cell(button, value);
        });
        if (mlps.length > 0) {
          cells.push(cell(make('span', 'mg-effect', { title: translate('sweep_cell', { name: `L${layer} MLP`, change: signed(mlps[layer]) }) }, [signed(mlps[layer])]), mlps[layer]));
        }
        return make('tr', '', {}, [make('th', '', { scope: 'row' }, [`L${layer}`]), ...cells]);
      }));
      if (focused !== undefined && focused !== null) {
        /** @type {HTMLElement | null} */ (body.querySelector(`[data-part="${focused}"]`))?.focus();
      }
    },
  };
}
