import {svelte} from '@sveltejs/vite-plugin-svelte';
import type {Rollup} from 'vite';
import {defineConfig} from 'vitest/config';

// `npm run dev` shows the page of this folder with the data of a running server.
const server = process.env.VITRINE_SERVER ?? 'http://127.0.0.1:8080';

// Whether the page has it from the start: imported from the entry on without a pause.
function isFirst(id: string, about: Rollup.GetModuleInfo, seen = new Set<string>()): boolean {
  const info = about(id);
  if (!info || seen.has(id)) return false;
  seen.add(id);
  return info.isEntry || info.importers.some((by) => isFirst(by, about, seen));
}

export default defineConfig({
  base: '/ui/',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    modulePreload: {polyfill: false},
    assetsInlineLimit: 0,
    cssCodeSplit: true,
    rollupOptions: {
      output: {
        experimentalMinChunkSize: 3500, // bytes; smaller files go with others
        // Styles of all views but the first are one file, which is smaller than its parts.
        manualChunks: (id, {getModuleInfo}) => (id.endsWith('.css') && !isFirst(id, getModuleInfo) ? 'later' : undefined),
      },
    },
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/v1', '/tokenize', '/apply-template', '/metrics', '/ready'].map((path) => [path, {target: server}]),
    ),
  },
  test: {include: ['test/**/*.test.ts']},
});
