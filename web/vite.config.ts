import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

/** The Berth server that `npm run dev` hands the API's calls to. */
const server = process.env.BERTH_URL ?? 'http://127.0.0.1:8080';

const proxy = Object.fromEntries(['/api', '/docs', '/feeds', '/open'].map((path) => [path, { target: server, changeOrigin: false }]));

/** What the server sends with these pages; `npm run e2e` runs under it, so that a breach fails the tests. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

export default defineConfig({
  plugins: [svelte()],
  // Addresses are relative, because the server may live under a base path that is known only when it runs.
  base: './',
  build: {
    target: 'es2023',
    // The oldest that know popovers and light-dark(), which a part of a page can then turn over, as a preview does.
    cssTarget: ['chrome123', 'firefox125', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy },
  preview: { proxy, headers: { 'content-security-policy': contentSecurityPolicy } },
  test: { include: ['src/**/*.test.ts'] },
});
