import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default ts.config(
  {
    ignores: [
      '.svelte-kit/',
      'build/',
      'test-results/',
      'src/lib/api/schema.d.ts',
      'src/lib/text/messages/',
    ],
  },
  js.configs.recommended,
  ...ts.configs.recommended,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: {
      // The compiler finds undefined names.
      'no-undef': 'off',
      // A static style attribute is blocked by the Content-Security-Policy; use a class.
      'svelte/no-inline-styles': ['error', { allowTransitions: false }],
      // The pages are served from the root, so links need no `resolve`.
      'svelte/no-navigation-without-resolve': 'off',
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: {
      parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'], svelteConfig },
    },
  },
);
