/** Preloaded with --import: writes the names of the packages that the process has loaded to stderr when it ends. */

import { registerHooks } from "node:module";

const loaded = new Set<string>();
registerHooks({
  load(url, context, next) {
    const name = /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
    if (name !== undefined) loaded.add(name);
    return next(url, context);
  },
});
process.on("exit", () => process.stderr.write(`\nloaded: ${[...loaded].join(" ")}\n`));
