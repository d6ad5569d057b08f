import {vitePreprocess} from '@sveltejs/vite-plugin-svelte';

// Names of scopes are short, since they stand at every element.
export default {preprocess: vitePreprocess(), compilerOptions: {runes: true, cssHash: ({hash, css}) => `s${hash(css).slice(0, 4)}`}};
