import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["assets/viewer/**/*.js"],
    languageOptions: {
      ecmaVersion: "latest",
      sourceType: "module",
      globals: { ...globals.browser, Plotly: "readonly" },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      curly: "error",
      eqeqeq: "error",
      "no-console": "error",
      "no-implicit-globals": "error",
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-var": "error",
      "prefer-const": "error",
      // What people type reaches the page only as text.
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Build elements and set textContent." },
        { property: "outerHTML", message: "Build elements and set textContent." },
        { property: "insertAdjacentHTML", message: "Build elements and set textContent." },
      ],
    },
  },
];
