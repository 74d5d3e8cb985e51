/**
 * The disk of a simulated node: the database of its store and its small files. It survives the processes that use it.
 * What was committed stays when a process is killed; what was still being written is lost. A disk can also be lost.
 */

import { DatabaseSync } from "node:sqlite";
import type { Clock } from "../../src/platform/clock.ts";
import type { AppendFile, Files } from "../../src/platform/files.ts";
import { openCache, sqliteStore, type SqliteStore } from "../../src/store/sqlite/store.ts";

/** Databases in memory have names within the process. */
let made = 0;
/** How long a write of a small file takes: enough for other events to come in between. */
const WRITE_MS = 3;

export class SimDisk {
  readonly #writeMs: number;
  #texts = new Map<string, string>();
  #name = "";
  /** Keeps the database while no process has it open. */
  #anchor: DatabaseSync | null = null;
  #open: DatabaseSync | null = null;
  #uses = 0;
  /** As the last process has opened it. */
  store: SqliteStore | null = null;

  /** Writes of small files take so long. */
  constructor(writeMs = WRITE_MS) {
    this.#writeMs = writeMs;
    this.lose();
  }

  text(path: string): string | null {
    return this.#texts.get(path) ?? null;
  }

  /** Refuses a second process, as the lock on a real file does. */
  openStore(clock: Clock): SqliteStore {
    const db = new DatabaseSync(this.#name);
    const store = sqliteStore(openCache(`disk ${this.#name}`, clock, db));
    this.#open = db;
    this.store = store;
    return store;
  }

  /** As the process with this clock sees them. */
  files(clock: Clock): Files {
    const use = ++this.#uses;
    const write = async (path: string, text: () => string): Promise<void> => {
      await clock.sleep(this.#writeMs);
      if (use === this.#uses) this.#texts.set(path, text());
    };
    return {
      read: async (path) => this.text(path),
      replace: (path, text) => write(path, () => text),
      append: async (path): Promise<AppendFile> => ({
        add: (text) => write(path, () => (this.#texts.get(path) ?? "") + text),
        close: async () => {},
      }),
    };
  }

  /** The process that used it has been killed: its transaction, if one was open, never happened. */
  crash(): void {
    this.#uses++;
    if (this.#open?.isOpen) this.#open.close();
    this.#open = null;
  }

  /** An empty disk from now on. */
  lose(): void {
    this.crash();
    this.#anchor?.close();
    this.#texts = new Map();
    this.#name = `file:/sim-${++made}?vfs=memdb`;
    this.#anchor = new DatabaseSync(this.#name);
  }

  close(): void {
    this.crash();
    this.#anchor?.close();
    this.#anchor = null;
  }
}
