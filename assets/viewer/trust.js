/**
 * How exact what is drawn is, measured with every analysis; and what attention does not say.
 *
 * @typedef {import('./types.js').Translate} Translate
 */
import { make, say } from './dom.js';

/** @param {() => Translate} words @returns {import('./types.js').View} */
export function trustView(words) {
  const checks = make('p', 'mg-checks');
  const caveat = make('p');
  return {
    element: make('footer', 'mg-trust', {}, [checks, caveat]),
    update({ analysis }, changed) {
      if (analysis === null || !(changed.has('analysis') || changed.has('language'))) {
        return;
      }
      const { logit_difference: logits, compared, row_sum_error: sums } = analysis.checks;
      const told = compared < analysis.length ? 'trust_first' : 'trust';
      say(checks, words()(told, { compared, logits: scientific(logits), sums: scientific(sums) }));
      say(caveat, words()('trust_caveat'));
    },
  };
}

/** @param {number} value @returns {string} */
function scientific(value) {
  return value === 0 ? '0' : value.toExponential(1).replace('-', '−');
}
