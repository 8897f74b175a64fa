/**
 * What the viewer knows of the page around it: the prompt is typed into `#prompt`, `#generate` continues it, `#stop` stops.
 *
 * @typedef {object} Controls  The values of the page's controls; null where a field is empty.
 * @property {string | null} model
 * @property {string | null} text
 * @property {number | null} length
 * @property {number | null} temperature
 * @property {number | null} top_k
 * @property {number | null} top_p
 * @property {number | null} min_p
 * @property {number | null} repetition_penalty
 * @property {number | null} count
 * @property {number | null} seed
 */

const PAUSE_MS = 200;
/** A syllable that is still being composed is not what the person means yet. */
const COMPOSING_PAUSE_MS = 700;

/**
 * Call back once typing in the prompt has paused. Listens on the document, so that a prompt that the page rebuilds is heard.
 *
 * @param {() => void} typed
 */
export function followPrompt(typed) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @param {number} pause */
  const later = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(typed, pause);
  };
  /** @param {Event} event */
  const isPrompt = (event) => event.target instanceof HTMLTextAreaElement && event.target.closest('#prompt') !== null;

  document.addEventListener('input', (event) => {
    if (!isPrompt(event)) {return;}
    later(event instanceof InputEvent && event.isComposing ? COMPOSING_PAUSE_MS : PAUSE_MS);
  });
  // Generating begins with an analysis of its own.
  document.addEventListener('click', (event) => {
    if (event.target instanceof Element && event.target.closest('#generate') !== null) {
      clearTimeout(timer);
    }
  });
  document.addEventListener('compositionend', (event) => {
    if (isPrompt(event)) {later(PAUSE_MS);}
  });
}

/**
 * Call back with the values of the page's controls, each time they were asked for with the event `copy_link`.
 *
 * @param {(controls: Controls) => void} tell
 */
export function followCopying(tell) {
  document.addEventListener('minigpt:copy-link', (event) => {
    if (event instanceof CustomEvent) {
      tell(event.detail);
    }
  });
}

/** @returns {string | null} The language of the page, if it was chosen and does not just follow the browser. */
export function chosenLanguage() {
  return document.documentElement.dataset.chosenLanguage ?? null;
}

/** Open a link that is pasted into the address of the page itself: only what stands behind the `#` is another one then. */
export function followAddress() {
  addEventListener('hashchange', () => {
    if (location.hash.includes('=')) {
      location.reload();
    }
  });
}

/**
 * Call back when generation is stopped.
 *
 * @param {() => void} stopped
 */
export function followStop(stopped) {
  document.addEventListener('click', (event) => {
    if (event.target instanceof Element && event.target.closest('#stop:not(:disabled)') !== null) {
      stopped();
    }
  });
}
