/**
 * What the cells of all heads show: attention weights, or something else that the server computed for this very text and change.
 *
 * The strip, its read-out and the table always speak of weights. Until the numbers of another view are there, weights are drawn,
 * and every title and legend says what is drawn now, not what was asked for.
 *
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').Host} Host
 * @typedef {import('./types.js').ViewName} ViewName
 * @typedef {import('./types.js').Viewed} Viewed
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./decode.js').Analysis} Analysis
 * @typedef {import('./state.js').Store} Store
 */
import { aboutOf, isWriting } from './asking.js';
import { readNotice, readView } from './decode.js';
import { signed } from './diverging.js';
import { changeOf, isChanged } from './whatif.js';

/** @type {readonly ViewName[]} */
export const VIEWS = ['raw', 'value', 'logit', 'rollout', 'after', 'difference'];
/** The views whose numbers have a sign. */
const SIGNED = ['logit', 'difference'];
/** The views of a changed model. */
const OF_CHANGE = ['after', 'difference'];

/**
 * The views that there are now: those of a change only where something is changed.
 *
 * @param {Readonly<State>} state
 * @returns {ViewName[]}
 */
export function viewsOf({ whatIf }) {
  return VIEWS.filter((name) => !OF_CHANGE.includes(name) || isChanged(whatIf));
}

/**
 * What is drawn now, if it is not weights.
 *
 * @param {Readonly<State>} state
 * @returns {Viewed | null}
 */
export function viewedOf({ view, viewed, analysis }) {
  return view !== 'raw' && viewed !== null && viewed.name === view && viewed.about === analysis ? viewed : null;
}

/**
 * The analysis whose cells are drawn.
 *
 * @param {Readonly<State>} state
 * @returns {Analysis | null}
 */
export function picturedOf(state) {
  return viewedOf(state)?.analysis ?? state.analysis;
}

/** @param {ReadonlySet<keyof State>} changed @returns {boolean} Whether other cells may be drawn now. */
export function reviewed(changed) {
  return changed.has('view') || changed.has('viewed') || changed.has('analysis');
}

/**
 * A title with what is drawn, where it is not weights.
 *
 * @param {Translate} translate
 * @param {Readonly<State>} state
 * @param {string} title
 * @returns {string}
 */
export function titled(translate, state, title) {
  const viewed = viewedOf(state);
  return viewed === null ? title : `${title} · ${translate(`view_${viewed.name}`)}`;
}

/**
 * A number of a view as it is read out.
 *
 * @param {Viewed} viewed
 * @param {number} value
 * @returns {string}
 */
export function numberOf({ name, analysis }, value) {
  return SIGNED.includes(name) ? signed(value) : value.toFixed(analysis.span.top < 10 ? 3 : 1);
}

/**
 * Keep the numbers of the chosen view in the state: ask when they are those of another text or change, drop what comes too late.
 *
 * @param {Store} store
 * @param {Host} host
 */
export function followViews(store, host) {
  let asked = '';

  /** @param {string} key What was asked. @param {any} message @param {Analysis} analysis */
  async function receive(key, message, analysis) {
    const pictured = message?.kind === 'view' ? await readView(message, analysis) : null;
    if (asked !== key) {
      return;
    }
    const { view, analysis: about } = store.state;
    if (pictured !== null && about !== null) {
      store.set({ viewed: { name: view, analysis: pictured, about, key } });
    } else {
      store.set({ view: 'raw', ...(message?.kind === 'notice' ? { notice: readNotice(message) } : { remarks: [{ key: 'asking_failed' }] }) });
    }
  }

  store.subscribe((state) => {
    const { view, viewed, analysis, whatIf } = state;
    if (view === 'raw' || analysis === null || isWriting(state)) {
      asked = '';
      return;
    }
    if (!viewsOf(state).includes(view) || !canView(host)) {
      store.set({ view: 'raw' });
      return;
    }
    const change = OF_CHANGE.includes(view) ? changeOf(whatIf, analysis.start, analysis.end) : null;
    const about = aboutOf(analysis);
    const key = JSON.stringify([view, about, change]);
    const isThere = viewed?.key === key && viewed.about === analysis;
    const isComing = asked === key && viewed?.key !== key;
    asked = key;
    if (isThere || isComing) {
      return;
    }
    if (viewed !== null) {
      store.set({ viewed: null });
    }
    host.server.ask(about.model, about.ids, 'view', { view, change }).then((message) => receive(key, message, analysis), () => receive(key, null, analysis));
  });
}

/** @param {Host} host @returns {boolean} Whether there is a server that can compute other numbers. */
export function canView(host) {
  return 'ask' in host.server;
}
