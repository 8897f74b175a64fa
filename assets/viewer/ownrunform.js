/**
 * The form for a training run of one's own: the text, pasted or from a file, a name, the settings. What is typed stays until it is
 * changed, whatever the server says; a file is read here, as UTF-8 text.
 *
 * @typedef {import('./types.js').Translate} Translate
 * @typedef {import('./ownrun.js').Standing} Standing
 * @typedef {{name: string, preset: string, steps: number | null, text: string}} Asked
 */
import { make, mark, say, wordButton } from './dom.js';
import { picker } from './picker.js';

const FIRST_PRESET = 'quick';

/** @param {(asked: Asked) => void} start */
export function ownRunForm(start) {
  /** @type {Translate} */
  let words = (key) => key;
  /** @type {Standing | null} */
  let standing = null;
  let preset = FIRST_PRESET;
  /** @type {{name: string, text: string} | null} */
  let file = null;
  /** @type {{key: string, values: Record<string, string | number>} | null} What is wrong with a file. */
  let fault = null;
  let counted = { text: '', different: 0 };

  const textLabel = make('span', 'mg-own-label');
  const text = make('textarea', 'mg-field mg-own-text', { rows: '7', spellcheck: 'false' });
  const chosen = make('input', '', { type: 'file', accept: '.txt,.md,text/*', hidden: '' });
  const choose = wordButton('mg-step', () => chosen.click());
  const drop = wordButton('mg-step', () => take(null));
  const count = make('p', 'mg-note', { role: 'status' });
  const nameLabel = make('span');
  const name = make('input', 'mg-field mg-own-name', { type: 'text', maxlength: '40', autocomplete: 'off', spellcheck: 'false' });
  const presets = picker((value) => {
    preset = value;
    steps.value = String(numbers()?.steps ?? '');
    tell();
  });
  const purpose = make('p', 'mg-note');
  const facts = make('p', 'mg-note');
  const stepsLabel = make('span');
  const steps = make('input', 'mg-field', { type: 'number', min: '1', step: '1' });
  const begin = make('button', 'mg-action', { type: 'submit' });
  const textPart = make('label', 'mg-own-part', {}, [textLabel, text]);
  const element = make('form', 'mg-two mg-own-form', { novalidate: '' }, [
    make('div', 'mg-own-part', {}, [textPart, make('div', 'mg-inline', {}, [choose.element, drop.element, chosen]), count]),
    make('div', 'mg-own-part', {}, [
      make('label', 'mg-inline', {}, [nameLabel, name]),
      presets.element,
      purpose,
      facts,
      make('label', 'mg-inline', {}, [stepsLabel, steps]),
      begin,
    ]),
  ]);

  element.addEventListener('submit', (event) => {
    event.preventDefault();
    const asked = steps.value.trim() === '' ? null : Number(steps.value);
    start({ name: name.value, preset, steps: asked, text: file?.text ?? text.value });
  });
  text.addEventListener('input', tell);
  chosen.addEventListener('change', () => {
    const [first] = chosen.files ?? [];
    chosen.value = '';
    if (first !== undefined) {
      void read(first);
    }
  });

  /** @returns {import('./ownrun.js').Preset | undefined} */
  function numbers() {
    return standing?.presets.find((each) => each.name === preset);
  }

  /** @param {File} given */
  async function read(given) {
    const most = standing?.limits.bytes ?? 0;
    if (given.size > most) {
      fault = { key: 'train_file_too_large', values: { name: given.name, size: (given.size / 1e6).toFixed(1), most: most / 1e6 } };
      tell();
      return;
    }
    try {
      const decoded = new TextDecoder('utf-8', { fatal: true }).decode(await given.arrayBuffer());
      take({ name: given.name, text: decoded });
    } catch {
      fault = { key: 'train_file_not_text', values: { name: given.name } };
      tell();
    }
  }

  /** @param {{name: string, text: string} | null} given */
  function take(given) {
    const hadFocus = document.activeElement === drop.element;
    file = given;
    fault = null;
    tell();
    if (hadFocus) {
      text.focus();
    }
  }

  function tell() {
    const facing = numbers();
    textPart.hidden = file !== null;
    drop.element.hidden = file === null;
    say(count, fault === null ? countOf() : words(fault.key, fault.values));
    count.classList.toggle('mg-own-said', fault !== null);
    presets.show(words('train_preset'), (standing?.presets ?? []).map((each) => [each.name, each.name]), preset);
    say(purpose, words(`train_preset_${preset.replaceAll('-', '_')}`));
    if (facing !== undefined) {
      const { layers, heads, width, window, batch, needed } = facing;
      say(facts, words('train_facts', { layers, heads, width, window, batch, needed: needed.toLocaleString('en') }));
    }
  }

  function countOf() {
    const given = file?.text ?? text.value;
    if (counted.text !== given) {
      counted = { text: given, different: new Set(given).size };
    }
    const values = { count: Array.from(given).length.toLocaleString('en'), different: counted.different.toLocaleString('en') };
    return file === null ? words('train_counted', values) : words('train_counted_file', { name: file.name, ...values });
  }

  return {
    element,
    /** @param {Translate} translate @param {Standing} now */
    show(translate, now) {
      const isFirst = standing === null;
      const before = words;
      words = translate;
      standing = now;
      if (isFirst) {
        steps.value = String(numbers()?.steps ?? '');
        mark(steps, 'max', String(now.limits.steps));
      }
      if (isFirst || name.value === before('train_first_name')) {
        name.value = words('train_first_name');
      }
      say(textLabel, words('train_text'));
      mark(text, 'placeholder', words('train_placeholder'));
      choose.name(words('train_choose_file'));
      drop.name(words('train_drop_file'));
      say(nameLabel, words('train_name'));
      say(stepsLabel, words('train_steps'));
      say(begin, words('train_start'));
      tell();
    },
  };
}
