/**
 * The continuations of one prompt: the first one, and those that somebody began by picking another token somewhere.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Stream} Stream
 * @typedef {import('./types.js').Sampling} Sampling
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./steps.js').Choice} Choice
 *
 * @typedef {object} Picked  Where a branch leaves another, and with what.
 * @property {number} from  The other's number.
 * @property {number} at  True position of the token that was picked.
 * @property {number} instead  The id that stands there in the other.
 * @property {Choice & {rank: number}} choice  What was picked; rank 0 is the likeliest.
 *
 * @typedef {object} Branch
 * @property {number} id
 * @property {number} promptLength
 * @property {number[]} generated  Ids of all tokens after the prompt.
 * @property {number[]} probabilities  What the model itself gave each of them, in the window that it was predicted from.
 * @property {number} given  How many of them it began with.
 * @property {Record<string, string>} pieces  The text of every id among them.
 * @property {Sampling} sampling
 * @property {Picked | null} picked  Null for the first one.
 */

/** Most branches that are kept. */
export const MOST = 8;

/** @param {Readonly<State>} state @returns {Branch | null} The branch that is looked at. */
export function currentBranch({ branches, branch }) {
  return branches.find(({ id }) => id === branch) ?? null;
}

/**
 * The changes that new text brings.
 *
 * @param {Readonly<State>} state
 * @param {Stream} stream
 * @returns {Partial<State>}
 */
export function branchesWithStream(state, { generated, pieces, promptLength, run }) {
  return changed(state, run, { generated, pieces, promptLength });
}

/**
 * The changes that a new analysis brings. One of a text in which nothing was generated belongs to no continuation.
 *
 * @param {Readonly<State>} state
 * @param {Analysis} analysis
 * @returns {Partial<State>}
 */
export function branchesWith(state, analysis) {
  const { promptLength, run } = analysis;
  const generated = analysis.text.slice(promptLength);
  if (generated.length === 0) {
    return { branches: [], branch: 0 };
  }
  const pieces = Object.fromEntries(generated.map((id) => [id, analysis.piece(id)]));
  return changed(state, run, { generated, pieces, promptLength });
}

/**
 * @param {Readonly<State>} state
 * @param {import('./types.js').Run | null} run
 * @param {Pick<Branch, 'generated' | 'pieces' | 'promptLength'>} text
 * @returns {Partial<State>}
 */
function changed({ branches, branch }, run, text) {
  const id = run?.branch ?? branch;
  const known = branches.find((each) => each.id === id);
  if (known !== undefined) {
    const probabilities = run === null ? known.probabilities : [...known.probabilities.slice(0, known.given), ...run.drawn];
    const others = run === null ? [] : beside(run, text);
    const updated = branches.map((each) => {
      const other = others.find(({ id: its }) => its === each.id);
      return each === known ? { ...known, ...text, probabilities } : (other ?? each);
    });
    return { branches: [...updated, ...others.filter((other) => !branches.some(({ id: its }) => its === other.id))] };
  }
  if (run === null) {
    return {};
  }
  const { drawn: probabilities, sampling } = run;
  return { branches: [{ id, ...text, probabilities, given: 0, sampling, picked: null }, ...beside(run, text)], branch: id };
}

/**
 * The continuations that are written side by side with another.
 *
 * @param {import('./types.js').Run} run
 * @param {Pick<Branch, 'promptLength'>} text
 * @returns {Branch[]}
 */
function beside({ others, sampling }, { promptLength }) {
  return (others ?? []).map(({ branch: id, generated, drawn, pieces }) => {
    return { id, promptLength, generated, probabilities: drawn, given: 0, pieces, sampling, picked: null };
  });
}

/**
 * Begin a branch at a step, with another token than the one that was taken there.
 *
 * @param {Readonly<State>} state
 * @param {number} at True position of the token.
 * @param {Choice & {rank: number}} choice
 * @param {string} piece The text of the token.
 * @returns {Branch | null} Null where there is nothing to leave.
 */
export function branchAt(state, at, choice, piece) {
  const other = currentBranch(state);
  const index = at - (other?.promptLength ?? 0);
  if (other === null || index < 0 || index >= other.generated.length) {
    return null;
  }
  const generated = [...other.generated.slice(0, index), choice.id];
  return {
    id: Math.max(...state.branches.map(({ id }) => id)) + 1,
    promptLength: other.promptLength,
    generated,
    probabilities: [...other.probabilities.slice(0, index), choice.before],
    given: generated.length,
    pieces: { ...other.pieces, [choice.id]: piece },
    sampling: other.sampling,
    picked: { from: other.id, at, instead: other.generated[index], choice },
  };
}

/**
 * All branches with one more: the oldest one goes when there are too many, but neither the first nor the one that is left.
 *
 * @param {Branch[]} branches
 * @param {Branch} added
 * @returns {Branch[]}
 */
export function withBranch(branches, added) {
  const spare = branches.findIndex(({ id }, index) => index > 0 && id !== added.picked?.from);
  const kept = branches.length < MOST ? branches : branches.filter((_, index) => index !== spare);
  return [...kept, added];
}

/**
 * The sum of log₂ of what the model itself gave each generated token; null while that is not known of all of them.
 *
 * @param {Branch} branch
 * @returns {number | null} In bits, at most 0.
 */
export function logProbability({ generated, probabilities }) {
  return generated.length === probabilities.length ? probabilities.reduce((sum, chance) => sum + Math.log2(chance), 0) : null;
}
