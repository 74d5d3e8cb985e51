/**
 * The secret of nodes that only listen on their own machine: made once, kept in the user's own directory, readable for that
 * user alone. Other users of the machine are kept out by it, other machines by the loopback address.
 */

import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../core/errors.ts";
import { newSecret } from "../platform/random.ts";
import type { Environment } from "./environment.ts";
import { writeSecretFile } from "./secret-file.ts";

export function machineSecretFile(environment: Environment): string {
  const home = environment["HOME"] || homedir();
  const state =
    process.platform === "win32"
      ? environment["LOCALAPPDATA"] || join(home, "AppData", "Local")
      : environment["XDG_STATE_HOME"] || join(home, ".local", "state");
  return join(state, "baton", "secret");
}

/** Throws BAD_CONFIG with the remedy when it cannot be kept, or others could have read or written it. */
export function machineSecret(environment: Environment): string {
  const file = machineSecretFile(environment);
  try {
    return readOwn(file) ?? create(file);
  } catch (error) {
    if (error instanceof BatonError) throw error;
    throw bad(file, `cannot be read or kept (${String((error as NodeJS.ErrnoException).code)})`);
  }
}

function readOwn(file: string): string | null {
  let handle: number;
  try {
    handle = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    if (code === "ELOOP") throw bad(file, "is a link");
    throw error;
  }
  try {
    const found = fstatSync(handle);
    if (process.getuid && found.uid !== process.getuid()) throw bad(file, "belongs to another user");
    if (process.platform !== "win32" && (found.mode & 0o077) !== 0) throw bad(file, "is open to other users");
    const secret = readFileSync(handle, "utf8").trim();
    if (secret === "") throw bad(file, "is empty");
    return secret;
  } finally {
    closeSync(handle);
  }
}

/** Written elsewhere and linked into place: of nodes that start together one wins, and nobody reads half of it. */
function create(file: string): string {
  mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
  const made = `${file}.${process.pid}`;
  rmSync(made, { force: true });
  writeSecretFile(made, newSecret());
  try {
    linkSync(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(made, { force: true });
  }
  return readOwn(file)!;
}

function bad(file: string, why: string): BatonError {
  return new BatonError(
    "BAD_CONFIG",
    `the secret of this machine's nodes, ${file}, ${why}; remove it, or set BATON_SECRET (\`baton secret create\`)`,
  );
}
