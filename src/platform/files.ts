/** The small files that a node keeps apart from its store. What was written survives a power cut. No other user can read or change it. */

import { constants } from "node:fs";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

export interface Files {
  read(path: string): Promise<string | null>;
  /** Replaces the whole file: after a power cut it has the old text or the new one, never a part. */
  replace(path: string, text: string): Promise<void>;
  /** Opens a file to add to its end. A crash can leave a part of the last text. */
  append(path: string): Promise<AppendFile>;
}

export interface AppendFile {
  add(text: string): Promise<void>;
  close(): Promise<void>;
}

const FILE_MODE = 0o600;
const DIR_MODE = 0o700;

export const systemFiles: Files = {
  async read(path) {
    try {
      return await readFile(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  },

  async replace(path, text) {
    const directory = dirname(path);
    const draft = `${path}.new`;
    await mkdir(directory, { recursive: true, mode: DIR_MODE });
    // What a crash left. Opened afresh, so that a link planted in its place is not followed.
    await rm(draft, { force: true });
    const { O_WRONLY, O_CREAT, O_EXCL } = constants;
    await using file = await open(draft, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE);
    await file.writeFile(text);
    await file.sync();
    await file.close();
    await rename(draft, path);
    await syncDirectory(directory);
  },

  async append(path) {
    const file = await open(path, "a", FILE_MODE);
    return {
      async add(text) {
        await file.appendFile(text);
        await file.datasync();
      },
      close: () => file.close(),
    };
  },
};

/** A rename is on disk with its directory. Windows opens no directories; there the rename itself is written through. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  await using directory = await open(path, "r");
  await directory.sync();
}
