import {vitePreprocess} from '@sveltejs/vite-plugin-svelte';

// Short names of classes, for the limits of size; five digits of a hash do not meet among some hundred components.
const cssHash = ({hash, css, filename}) => `s${hash(filename + css).slice(0, 5)}`;

export default {preprocess: vitePreprocess(), compilerOptions: {runes: true, discloseVersion: false, cssHash}};
