/** Files that contain a secret: for their owner only, and read only if no other user could have written them. */

import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";

export const ADMIN_TOKEN_FILE = "admin-token";

/** Why a file is not trusted, after its name. */
export class UntrustedFile extends Error {}

/** Throws EEXIST rather than write over anything. */
export function writeSecretFile(file: string, secret: string): void {
  const handle = openSync(file, "wx", 0o600);
  try {
    writeSync(handle, `${secret}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Null if there is none. Throws UntrustedFile. */
export function readOwnSecret(file: string): string | null {
  let handle: number;
  try {
    handle = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    if (code === "ELOOP") throw new UntrustedFile("is a link");
    throw error;
  }
  try {
    const found = fstatSync(handle);
    if (process.getuid && found.uid !== process.getuid()) throw new UntrustedFile("belongs to another user");
    if (process.platform !== "win32" && (found.mode & 0o077) !== 0)
      throw new UntrustedFile("is open to other users");
    const secret = readFileSync(handle, "utf8").trim();
    if (secret === "") throw new UntrustedFile("is empty");
    return secret;
  } finally {
    closeSync(handle);
  }
}

/** Linked into place: of processes that do it at the same time one wins, and nobody reads half of it. Returns what is there then. */
export function createOwnSecret(file: string, secret: string): string {
  const made = writtenBeside(file, secret);
  try {
    linkSync(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(made, { force: true });
  }
  return readOwnSecret(file)!;
}

/** Whatever was there, a link too, makes room for it. */
export function replaceOwnSecret(file: string, secret: string): void {
  renameSync(writtenBeside(file, secret), file);
}

function writtenBeside(file: string, secret: string): string {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const made = `${file}.${process.pid}`;
  rmSync(made, { force: true });
  writeSecretFile(made, secret);
  return made;
}
