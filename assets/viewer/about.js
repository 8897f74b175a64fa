/**
 * What a head does, in numbers, and what each of them means: under the pointer, and for everybody else as a list to open.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Translate} Translate
 */
import { make, mark, say } from './dom.js';

/** @param {() => Translate} words @returns {import('./types.js').View} */
export function scoresView(words) {
  const scores = make('ul', 'mg-scores');
  const summary = make('summary');
  const meanings = make('dl');
  const element = make('div', 'mg-about', {}, [scores, make('details', '', {}, [summary, meanings])]);

  /** @param {Readonly<State>} state */
  function write({ analysis, layer, head }) {
    if (analysis === null) {
      return;
    }
    const items = analysis.scores.map((name) => {
      const value = analysis.score(name, layer, head);
      const number = make('span', 'mg-number', {}, [Number.isNaN(value) ? '–' : value.toFixed(2)]);
      return make('li', '', { title: words()(`about_${name}`) }, [words()(`score_${name}`), ' ', number]);
    });
    scores.replaceChildren(...items);
  }

  /** @param {Readonly<State>} state */
  function explain({ analysis }) {
    const pairs = (analysis?.scores ?? []).map((name) => [
      make('dt', '', {}, [words()(`score_${name}`)]),
      make('dd', '', {}, [words()(`about_${name}`)]),
    ]);
    meanings.replaceChildren(...pairs.flat());
  }

  return {
    element,
    update(state, changed) {
      const renewed = changed.has('language') || changed.has('analysis');
      if (renewed || changed.has('layer') || changed.has('head')) {
        write(state);
      }
      if (changed.has('language') || meanings.childElementCount === 0) {
        mark(scores, 'aria-label', words()('detail_scores'));
        say(summary, words()('detail_about'));
        explain(state);
      }
    },
  };
}
