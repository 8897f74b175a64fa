/**
 * What is changed in the model: heads, layers' attention, feed-forward networks, single cells. Plain data in the state; how it
 * changes, how it travels to the server and how a link holds it.
 *
 * @typedef {import('./types.js').WhatIf} WhatIf
 * @typedef {import('./decode.js').Analysis} Analysis
 */

/** @type {WhatIf} */
export const NO_CHANGE = { heads: [], mode: 'zero', factor: 0.5, attention: [], mlps: [], edges: [], renormalise: true };
export const MODES = /** @type {const} */ (['zero', 'mean', 'scale']);
/** Most cells that are hidden at once, so that a link stays short. */
export const MOST_EDGES = 64;

/** @param {WhatIf} whatIf @returns {boolean} Whether anything is changed at all. */
export function isChanged({ heads, mode, factor, attention, mlps, edges }) {
  const some = heads.length > 0 && !(mode === 'scale' && factor === 1);
  return some || attention.length > 0 || mlps.length > 0 || edges.length > 0;
}

/**
 * Add a row to a list, or take it out where it is in it.
 *
 * @template {number | number[]} Row
 * @param {Row[]} rows
 * @param {Row} row
 * @returns {Row[]}
 */
export function toggled(rows, row) {
  const left = rows.filter((other) => String(other) !== String(row));
  return left.length < rows.length ? left : [...rows, row];
}

/**
 * @param {number[][]} rows
 * @param {number[]} row
 * @returns {boolean}
 */
export function includes(rows, row) {
  return rows.some((other) => String(other) === String(row));
}

/**
 * All heads of a layer off, or on again if all of them are off.
 *
 * @param {WhatIf} whatIf
 * @param {number} layer
 * @param {number} heads How many a layer has.
 * @returns {[number, number][]}
 */
export function wholeLayer({ heads: chosen }, layer, heads) {
  const others = chosen.filter(([other]) => other !== layer);
  const isWhole = chosen.length - others.length === heads;
  return isWhole ? others : [...others, ...Array.from({ length: heads }, (_, head) => /** @type {[number, number]} */ ([layer, head]))];
}

/**
 * All heads but the chosen ones: "only these" stay as they are.
 *
 * @param {WhatIf} whatIf
 * @param {Analysis} analysis
 * @returns {[number, number][]}
 */
export function allOthers({ heads }, analysis) {
  const all = Array.from({ length: analysis.layers * analysis.heads }, (_, index) =>
    /** @type {[number, number]} */ ([Math.floor(index / analysis.heads), index % analysis.heads]));
  return all.filter((head) => !includes(heads, head));
}

/**
 * The change as the server reads it; positions count from the first of the tokens that it gets.
 *
 * @param {WhatIf} whatIf
 * @param {number} start True position of that token.
 * @param {number} end The true position after the last one; cells beyond are left out.
 */
export function changeOf({ heads, mode, factor, attention, mlps, edges, renormalise }, start, end = Infinity) {
  return {
    heads_off: mode === 'scale' ? [] : heads,
    replace: mode === 'mean' ? 'mean' : 'zero',
    head_scales: mode === 'scale' ? heads.map((head) => [...head, factor]) : [],
    attention_off: attention.map((layer) => [layer]),
    mlps_off: mlps.map((layer) => [layer]),
    edges_off: edges
      .filter(([, , query, key]) => key >= start && query < end)
      .map(([layer, head, query, key]) => [layer, head, query - start, key - start]),
    renormalise,
  };
}

/**
 * The change as a word of a link: `mean.h1-2.a0.m3.e1-2-9-4.keep`.
 *
 * @param {WhatIf} whatIf
 * @returns {string | null} null where nothing is changed.
 */
export function wordOf(whatIf) {
  if (!isChanged(whatIf)) {
    return null;
  }
  const { heads, mode, factor, attention, mlps, edges, renormalise } = whatIf;
  const parts = [
    mode === 'scale' ? `scale-${Math.round(factor * 100)}` : mode,
    ...heads.map((row) => `h${row.join('-')}`),
    ...attention.map((layer) => `a${layer}`),
    ...mlps.map((layer) => `m${layer}`),
    ...edges.map((row) => `e${row.join('-')}`),
  ];
  return [...parts, ...(renormalise ? [] : ['keep'])].join('.');
}

/**
 * Read such a word.
 *
 * @param {string} word
 * @param {Analysis} analysis
 * @returns {WhatIf | null} null if it means nothing in this analysis.
 */
export function changeIn(word, analysis) {
  const [mode, ...parts] = word.split('.');
  const scale = /^scale-(\d{1,3})$/.exec(mode);
  const found = { ...NO_CHANGE, heads: [...NO_CHANGE.heads], renormalise: !parts.includes('keep') };
  if (scale !== null && Number(scale[1]) <= 200) {
    [found.mode, found.factor] = ['scale', Number(scale[1]) / 100];
  } else if (mode === 'zero' || mode === 'mean') {
    found.mode = mode;
  } else {
    return null;
  }
  const { layers, heads, end, checkpoint } = analysis;
  for (const part of parts.filter((each) => each !== 'keep')) {
    const match = /^([hame])(\d{1,6}(?:-\d{1,6})*)$/.exec(part);
    const row = match === null ? [] : match[2].split('-').map(Number);
    const [layer, head = 0, query = 0, key = 0] = row;
    const kind = `${match?.[1]}${row.length}`;
    if (row.length === 0 || layer >= layers || head >= heads || key > query || query >= end) {
      return null;
    }
    if (kind === 'h2') {
      found.heads = [...found.heads, [layer, head]];
    } else if (kind === 'a1') {
      found.attention = [...found.attention, layer];
    } else if (kind === 'm1' && checkpoint.kind === 'transformer') {
      found.mlps = [...found.mlps, layer];
    } else if (kind === 'e4' && found.edges.length < MOST_EDGES) {
      found.edges = [...found.edges, [layer, head, query, key]];
    } else {
      return null;
    }
  }
  return found;
}
