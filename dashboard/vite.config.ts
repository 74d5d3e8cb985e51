/**
 * Two pages: the dashboard and the API reference. Each loads all it needs at once, so that a page that is open while nodes are
 * upgraded lacks nothing.
 */

import { join } from "node:path";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  // Relative addresses: the page does not know under which prefix it is served.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: ["index.html", "reference.html"].map((page) => join(import.meta.dirname, page)),
    },
  },
  worker: { format: "es" },
});
