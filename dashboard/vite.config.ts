/** One script, one style sheet and one worker: a page that is open while nodes are upgraded has all it needs already. */

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
  },
  worker: { format: "es" },
});
