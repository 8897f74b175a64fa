/**
 * What the model expects after the chosen token, and the token that really follows.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 */
import { make, say } from './dom.js';
import { digits, glyph, named } from './glyphs.js';
import { askedStep, chosenToken } from './state.js';

/** @param {() => Translate} words @returns {import('./types.js').View} */
export function nextTokenView(words) {
  const title = make('h2', 'mg-title');
  const follows = make('p', 'mg-follows');
  const [token, probability] = [make('th', '', { role: 'columnheader' }), make('th', '', { role: 'columnheader' })];
  // Roles are spelled out because the style sheet lays the rows out in columns.
  const head = make('thead', 'mg-hidden', { role: 'rowgroup' }, [make('tr', '', { role: 'row' }, [token, probability])]);
  const body = make('tbody', '', { role: 'rowgroup' });
  const table = make('table', 'mg-next', { role: 'table' }, [head, body]);
  const element = make('section', 'mg-panel mg-area-next', {}, [make('header', 'mg-header', {}, [title, follows]), table]);

  /**
   * @param {string} text
   * @param {number} chance
   * @param {string} remark
   */
  function row(text, chance, remark) {
    const bar = make('span', 'mg-bar');
    bar.style.setProperty('--share', String(chance));
    const cells = [
      make('th', '', { role: 'rowheader' }, [make('span', 'mg-chip', {}, [glyph(text)])]),
      make('td', '', { role: 'cell' }, [bar, make('span', 'mg-number', {}, [digits(chance)]), make('span', 'mg-remark', {}, [remark])]),
    ];
    return make('tr', remark === '' ? '' : 'mg-taken', { role: 'row' }, cells);
  }

  return {
    element,
    update(state, changed) {
      const { analysis } = state;
      const position = chosenToken(state);
      // What a generated token was chosen from says more.
      element.hidden = askedStep(state) !== null;
      if (analysis === null || position === null || element.hidden) {
        return;
      }
      if (!['analysis', 'token', 'language', 'choices'].some((name) => changed.has(/** @type {keyof State} */ (name)))) {
        return;
      }
      const translate = words();
      const after = named(analysis.token(position), position);
      const choices = analysis.next(position);
      const taken = analysis.taken(position);
      say(title, translate('next', { token: after }));
      say(token, translate('next_token'));
      say(probability, translate('next_probability'));
      say(follows, followed(translate, analysis, position, taken));
      const remark = translate('next_taken');
      const rows = choices.map(({ id, probability: chance }) => row(analysis.piece(id), chance, id === taken?.id ? remark : ''));
      if (taken !== null && choices.every(({ id }) => id !== taken.id)) {
        rows.push(row(analysis.piece(taken.id), taken.probability, remark));
      }
      body.replaceChildren(...rows);
    },
  };
}

/**
 * One sentence on what follows.
 *
 * @param {Translate} translate
 * @param {import('./decode.js').Analysis} analysis
 * @param {number} position
 * @param {ReturnType<import('./decode.js').Analysis['taken']>} taken
 * @returns {string}
 */
function followed(translate, analysis, position, taken) {
  if (taken === null) {
    return translate('next_end');
  }
  const { vocab_size: count } = analysis.checkpoint;
  const token = named(analysis.piece(taken.id), position + 1);
  return translate('next_follows', { token, probability: digits(taken.probability), rank: taken.rank + 1, count });
}
