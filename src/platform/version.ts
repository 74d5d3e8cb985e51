import { readFileSync } from "node:fs";

// Read and not imported: as a module the manifest would pull the whole checkout into a build's root directory.
const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};

export const VERSION = manifest.version;
