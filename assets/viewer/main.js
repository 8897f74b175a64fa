/**
 * The viewer: takes the messages of the server, holds the state, puts the views on the page.
 *
 * @typedef {import('./types.js').Host} Host
 * @typedef {import('./types.js').State} State
 * @typedef {import('./types.js').View} View
 * @typedef {import('./types.js').Language} Language
 */
import { branchAt, branchesWithStream, withBranch } from './branches.js';
import { branchesView } from './branchlist.js';
import { choicesView } from './choices.js';
import { readAnalysis, readHead, readNotice, readStream, VERSION } from './decode.js';
import { make, mark } from './dom.js';
import { exportMenu } from './exportmenu.js';
import { HeatmapView } from './heatmap.js';
import { chosenBy, openedLink } from './link.js';
import { liveView } from './live.js';
import { Moments } from './moments.js';
import { nextTokenView } from './nexttoken.js';
import { noticeView } from './notice.js';
import { OverviewView } from './overview.js';
import { followAddress, followPrompt, followStop } from './page.js';
import { detailPanel, overviewPanel, stripPanel } from './panels.js';
import { followPlaying } from './player.js';
import { readoutView } from './readout.js';
import { shareView } from './share.js';
import { createStore, NOTHING_YET, withAnalysis } from './state.js';
import { stripView } from './strip.js';
import { surroundings } from './surroundings.js';
import { tabsView } from './tabs.js';
import { currentTheme, followTheme } from './theme.js';
import { goTo } from './time.js';
import { timelineView } from './timeline.js';
import { trustView } from './trust.js';
import { canView, followViews } from './views.js';
import { translator } from './words.js';

/** The state that a view has never seen. */
const EVERYTHING = /** @type {(keyof State)[]} */ ([...Object.keys(NOTHING_YET), 'theme', 'language']);

/**
 * Build the viewer inside an element of the page and keep it in step with the component's value.
 *
 * @param {HTMLElement} element
 * @param {Host} host
 */
export async function mount(element, host) {
  const [{ choice }] = await Promise.all([openedLink(), styled()]);
  followAddress();
  await build(element, host, choice);
}

/**
 * Build the viewer where its style sheet is there already.
 *
 * @param {HTMLElement} element
 * @param {Host} host
 * @param {import('./link.js').Choice} choice What is chosen when it opens.
 */
export async function build(element, host, choice) {
  /** @returns {Language} */
  const language = () => (host.props.language === 'ko' ? 'ko' : 'en');
  const store = createStore({ ...NOTHING_YET, theme: currentTheme(), language: language() });
  let words = translator(host.props.words, store.state.language);

  const root = make('div', 'mg');
  const moments = new Moments(store, host.server);
  const views = assemble(root, store, () => words, host, moments);
  followPlaying(store);
  followViews(store, host);

  store.subscribe((state, changed) => {
    if (changed.has('language')) {
      words = translator(host.props.words, state.language);
    }
    show(root, state);
    for (const view of views) {
      view.update(state, changed);
    }
    fetchHead(store, host);
  });
  show(root, store.state);
  for (const view of views) {
    view.update(store.state, new Set(EVERYTHING));
  }
  element.append(root);

  const receive = receiver(store, choice);
  const remark = () => {
    const { remarks } = host.props;
    if (remarks !== null && remarks !== undefined) {
      store.set({ remarks: [...store.state.remarks, { sentences: remarks }] });
    }
  };
  host.watch('remarks', remark);
  host.watch('value', () => void receive(host.props.value));
  host.watch('language', () => store.set({ language: language() }));
  followTheme((theme) => store.set({ theme }));
  followPrompt(() => host.trigger('analyze'));
  followStop(() => store.set({ stops: store.state.stops + 1 }));
  remark();
  await receive(host.props.value);
}

/**
 * Make the views and lay them out.
 *
 * @param {HTMLElement} root
 * @param {import('./state.js').Store} store
 * @param {() => import('./types.js').Translate} words
 * @param {Host} host
 * @param {Moments} moments
 * @returns {View[]}
 */
function assemble(root, store, words, host, moments) {
  const heatmap = new HeatmapView(store, words, (analysis, layer, head) => {
    root.dataset.shown = `${analysis.request}:${layer}:${head}`;
    root.dataset.step = String(analysis.predicts ?? '');
  });
  /** @param {View} view */
  const reveal = (view) => () => view.element.scrollIntoView({ block: 'start', behavior: 'instant' });
  const notice = noticeView(words, (action) => host.trigger(action));
  const share = shareView(store, words, host);
  const strip = stripPanel(store, words, stripView(store, words), readoutView(words), share);
  const [saveHead, saveAll] = [exportMenu(store, words, host, 'head'), exportMenu(store, words, host, 'all')];
  /** @type {View} */
  const detail = detailPanel(store, words, heatmap, () => reveal(overview)(), saveHead);
  const overview = overviewPanel(store, words, new OverviewView(store, words), reveal(detail), saveAll, canView(host));
  const next = nextTokenView(words);
  const trust = trustView(words);
  const time = timelineView(store, words);
  const choices = choicesView(words, (at, choice, piece) => branchOff(store, host, branchAt(store.state, at, choice, piece)));
  const branches = branchesView(words, (branch) => void moments.look(branch));
  const tabs = tabsView({ store, words, host });
  const parts = [strip, time, overview, detail, next, choices, branches, tabs, trust];
  const live = liveView(words);
  const body = make('div', 'mg-body', { id: 'mg-pictures', tabindex: '-1' });
  body.append(...parts.map((view) => view.element));
  root.append(notice.element, body, live.element);
  // The heatmap measures its labels: it comes first, before the others have touched the page in this turn.
  return [detail, strip, time, overview, next, choices, branches, tabs, trust, notice, live, surroundings(words, body)];
}

/**
 * Go on from another token than the one that was taken at a step.
 *
 * @param {import('./state.js').Store} store
 * @param {Host} host
 * @param {import('./branches.js').Branch | null} branch
 */
function branchOff(store, host, branch) {
  if (branch === null) {
    return;
  }
  const { id, generated, sampling } = branch;
  store.set({ branches: withBranch(store.state.branches, branch), branch: id, ...goTo(store.state, null) });
  host.trigger('branch', { branch: id, given: generated, sampling });
}

/** @param {HTMLElement} root @param {Readonly<State>} state What the style sheet needs to know. */
function show(root, { analysis, notice, language }) {
  mark(root, 'lang', language);
  root.classList.toggle('mg-empty', analysis === null);
  root.classList.toggle('mg-stale', notice !== null);
}

/**
 * Take messages in the order in which they were asked for; an answer older than what is shown is dropped.
 *
 * @param {import('./state.js').Store} store
 * @param {import('./link.js').Choice} choice What the first analysis is opened with.
 * @returns {(message: any) => Promise<void>}
 */
function receiver(store, choice) {
  let newest = 0;
  let isFirst = true;
  return async (message) => {
    if (message?.version !== VERSION) {
      return;
    }
    if (message.kind === 'generating') {
      if (message.request > newest) {
        const stream = readStream(message);
        store.set({ stream, notice: null, ...branchesWithStream(store.state, stream) });
      }
      return;
    }
    if (message.kind === 'notice') {
      if (message.request > newest) {
        newest = message.request;
        const { stream } = store.state;
        // Whatever was being generated has ended with it.
        store.set({ notice: readNotice(message), stream: stream && { ...stream, done: true } });
      }
      return;
    }
    const analysis = await readAnalysis(message);
    if (message.request > newest) {
      newest = message.request;
      const { patch, refused } = chosenBy(isFirst ? choice : {}, analysis);
      isFirst = false;
      const remarks = refused.length === 0 ? store.state.remarks : [...store.state.remarks, { key: 'link_choice' }];
      store.set({ ...withAnalysis(store.state, analysis), ...patch, remarks });
    }
  };
}

/**
 * Ask for the chosen head where the analysis brought thumbnails only.
 *
 * @param {import('./state.js').Store} store
 * @param {Host} host
 */
function fetchHead(store, host) {
  const { analysis, layer, head } = store.state;
  if (analysis === null || !analysis.needs(layer, head)) {
    return;
  }
  void host.server.one_head(analysis.checkpoint.name, analysis.ids, layer, head).then(async (message) => {
    if (message?.kind === 'head') {
      analysis.keep(layer, head, await readHead(message));
      store.set({ fetched: store.state.fetched + 1 });
      return;
    }
    analysis.forget(layer, head);
    if (message?.kind === 'notice') {
      store.set({ notice: readNotice(message) });
    }
  });
}

/** @returns {Promise<void>} Resolves once the style sheet beside this module is there. */
function styled() {
  const { href } = new URL('viewer.css', import.meta.url);
  const links = Array.from(document.querySelectorAll('link'));
  const link = links.find((other) => other.href === href) ?? make('link', '', { rel: 'stylesheet', href });
  if (link.sheet !== null) {
    return Promise.resolve();
  }
  return new Promise((resolve, reject) => {
    link.addEventListener('load', () => resolve());
    link.addEventListener('error', () => reject(new Error(`The viewer's style sheet did not load: ${href}`)));
    if (!link.isConnected) {
      document.head.append(link);
    }
  });
}
