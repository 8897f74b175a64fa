/**
 * The words of the page, in every language, as the server sent them.
 *
 * @typedef {import('./types.js').Language} Language
 * @typedef {import('./types.js').Translate} Translate
 */

/**
 * Make a function that says a key's sentence in one language.
 *
 * @param {Record<string, Record<string, string>>} words Sentences by language and key, without the prefix `viewer.`.
 * @param {Language} language
 * @returns {Translate}
 */
export function translator(words, language) {
  const sentences = words[language] ?? words.en ?? {};
  return (key, values = {}) => {
    const sentence = sentences[`viewer.${key}`] ?? words.en?.[`viewer.${key}`] ?? key;
    return sentence.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
  };
}
