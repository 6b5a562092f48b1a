import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

/** The Berth server that `npm run dev` hands the API's calls to. */
const server = process.env.BERTH_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [svelte()],
  // Addresses are relative, because the server may live under a base path that is known only when it runs.
  base: './',
  build: { target: 'es2023', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { '/api': server, '/docs': server, '/feeds': server } },
  test: { include: ['src/**/*.test.ts'] },
});
