/**
 * The file in which a voter stores its promises. It is small and replaced as a whole: written under another name,
 * flushed and renamed, and the directory is flushed too, so that after a power cut it has the old text or the new one,
 * never a part.
 */

import { constants } from "node:fs";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

export interface VoteFile {
  /** Null when there is none. */
  read(): Promise<string | null>;
  /** Resolves when it would survive a power cut. */
  write(text: string): Promise<void>;
}

export const VOTE_FILE = "votes.json";
/** Promises are as important as the data of the store: no other user may read or change them. */
const FILE_MODE = 0o600;
const DIR_MODE = 0o700;

export function voteFileIn(dir: string): VoteFile {
  const path = join(dir, VOTE_FILE);
  const draft = `${path}.new`;
  return {
    async read() {
      try {
        return await readFile(path, "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    },
    async write(text) {
      await mkdir(dir, { recursive: true, mode: DIR_MODE });
      // What a crash left. Opened afresh, so that a link planted in its place is not followed.
      await rm(draft, { force: true });
      const { O_WRONLY, O_CREAT, O_EXCL } = constants;
      const file = await open(draft, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(draft, path);
      await syncDirectory(dir);
    },
  };
}

async function syncDirectory(dir: string): Promise<void> {
  // Windows opens no directories; there the rename itself is written through.
  if (process.platform === "win32") return;
  const handle = await open(dir, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
