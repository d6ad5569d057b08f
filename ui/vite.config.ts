import {svelte} from '@sveltejs/vite-plugin-svelte';
import {defineConfig} from 'vitest/config';

// `npm run dev` shows the page of this folder with the data of a running server.
const server = process.env.VITRINE_SERVER ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: '/ui/',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    modulePreload: {polyfill: false},
    assetsInlineLimit: 0,
    cssCodeSplit: true,
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/v1', '/tokenize', '/apply-template', '/metrics', '/ready'].map((path) => [path, {target: server}]),
    ),
  },
  test: {include: ['test/**/*.test.ts']},
});
