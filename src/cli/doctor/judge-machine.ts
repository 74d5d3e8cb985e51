/** Judges the machine that runs `baton doctor`: its version of Node.js, its limits, its disk. */

import { bytes } from "../terminal/number-format.ts";
import type { Judgement } from "./finding.ts";
import { failed, ok, skipped, unless, warning } from "./finding.ts";

const NODE_NEEDED = [24, 16] as const;

export function judgeRuntime(version: string): readonly Judgement[] {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const enough = major > NODE_NEEDED[0] || (major === NODE_NEEDED[0] && minor >= NODE_NEEDED[1]);
  if (enough) return [ok(`Node ${version}`)];
  return [
    failed(
      `Node ${version} is too old: ${NODE_NEEDED.join(".")} is needed`,
      "install a newer Node, or run npm install without --omit=optional: it brings one along",
    ),
  ];
}

/** A node has a file for every connection: callers, peers, the database. Below this a busy gateway runs out. */
const OPEN_FILES_WISHED = 4_096;
/** Below this a node may not even get through its start. */
const OPEN_FILES_NEEDED = 256;

export function judgeOpenFiles(limit: number | "unlimited" | null): readonly Judgement[] {
  if (limit === null) return [skipped("the limit of open files is not known on this platform")];
  const fine = `${limit === "unlimited" ? "any number of" : limit} open files allowed`;
  if (limit === "unlimited" || limit >= OPEN_FILES_WISHED) return [ok(fine)];
  const remedy = "raise it: LimitNOFILE=65536 in systemd, `ulimit -n 65536` in a shell, ulimits in Docker";
  const message = `only ${limit} open files are allowed, and every connection is one`;
  return [limit < OPEN_FILES_NEEDED ? failed(message, remedy) : warning(message, remedy)];
}

export interface DirectoryFacts {
  readonly path: string;
  readonly exists: boolean;
  /** Whether this user may write there, or make it. */
  readonly writable: boolean;
  /** Permission bits; null where there are none. */
  readonly mode: number | null;
  readonly freeBytes: number | null;
  readonly totalBytes: number | null;
  /** As "nfs"; null for one that is not known as troublesome. */
  readonly network: string | null;
}

const FREE_NEEDED = 256 * 2 ** 20;
const FREE_WISHED = 2 * 2 ** 30;
const SHARE_WISHED = 0.05;

export function judgeDirectory(facts: DirectoryFacts): readonly Judgement[] {
  const { path, exists, writable, mode, freeBytes, totalBytes, network } = facts;
  const problems: Judgement[] = [];
  if (!writable) {
    problems.push(
      failed(
        `${path} ${exists ? "cannot be written" : "is not there and cannot be made"} by this user`,
        `give it to the user of the node (chown), or name another with --data`,
      ),
    );
  }
  if (exists && mode !== null && (mode & 0o077) !== 0) {
    problems.push(
      warning(`other users can look into ${path}, where payloads and results are`, `type: chmod 700 ${path}`),
    );
  }
  if (network !== null) {
    problems.push(
      warning(
        `${path} is on a network file system (${network}), where locks and fsync do not keep what they promise`,
        "put it on a local disk, or use PostgreSQL (--store)",
      ),
    );
  }
  if (freeBytes !== null && totalBytes !== null) {
    const low = freeBytes < FREE_WISHED && freeBytes < totalBytes * 0.5;
    const message = `${bytes(freeBytes)} of ${bytes(totalBytes)} are free where ${path} is`;
    const remedy =
      "make room: a full disk refuses every submit; retention.* says how long finished jobs are kept";
    if (freeBytes < FREE_NEEDED) problems.push(failed(message, remedy));
    else if (low || freeBytes < totalBytes * SHARE_WISHED) problems.push(warning(message, remedy));
  }
  const room = freeBytes === null ? "" : `, ${bytes(freeBytes)} free`;
  return unless(problems, `${path} ${exists ? "is there" : "can be made"}${room}`);
}
