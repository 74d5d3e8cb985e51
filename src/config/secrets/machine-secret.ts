/**
 * The secret of nodes that listen only on their own machine: generated once, stored in the user's own directory,
 * readable by that user only. It keeps out other users of the machine; the loopback address keeps out other machines.
 */

import { homedir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../../core/errors.ts";
import { newSecret } from "../../platform/random.ts";
import type { Environment } from "../sources/environment.ts";
import { createOwnSecret, readOwnSecret, UntrustedFile } from "./secret-file.ts";

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
    return readOwnSecret(file) ?? createOwnSecret(file, newSecret());
  } catch (error) {
    if (error instanceof UntrustedFile) throw bad(file, error.message);
    throw bad(file, `cannot be read or kept (${String((error as NodeJS.ErrnoException).code)})`);
  }
}

function bad(file: string, why: string): BatonError {
  return new BatonError(
    "BAD_CONFIG",
    `the secret of this machine's nodes, ${file}, ${why}; remove it, or set BATON_SECRET (\`baton secret create\`)`,
  );
}
