/** Where the measured stores lie: inside the checkout, because the system's temporary directory may be memory. */

import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { median } from "./statistics.ts";

const RESULTS = join(import.meta.dirname, "results");
/** Magic numbers of statfs(2) for file systems that live in memory. */
const IN_MEMORY = new Map([
  [0x01021994, "tmpfs"],
  [0x858458f6, "ramfs"],
]);

export function diskKind(dir: string): string {
  const memory = IN_MEMORY.get(statfsSync(dir).type);
  return memory
    ? `MEMORY (${memory}): durable writes cost nothing here, the figures mean little`
    : "a real disk";
}

export class Workplace {
  readonly #root: string;
  #dirs = 0;

  constructor() {
    mkdirSync(RESULTS, { recursive: true });
    this.#root = mkdtempSync(join(RESULTS, "run-"));
    process.once("exit", () => this.remove());
  }

  dir(name: string): string {
    return join(this.#root, `${++this.#dirs}-${name}`);
  }

  describe(): string {
    return diskKind(this.#root);
  }

  /** Called once more at exit, for what a failed run leaves behind. */
  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  /** How long it takes now to append 4 KiB durably, in the middle. Neighbours and quotas make it change within a run. */
  syncMs(): number {
    const fd = openSync(join(this.#root, "sync"), "w");
    const page = Buffer.alloc(4_096, 1);
    const took: number[] = [];
    for (let i = 0; i < 100; i++) {
      const startedAt = performance.now();
      writeSync(fd, page);
      fdatasyncSync(fd);
      took.push(performance.now() - startedAt);
    }
    closeSync(fd);
    return median(took);
  }
}
