/** Who may read the secrets, and who reaches the node without one. */

import { isEverywhere, isLoopback } from "../../config/address.ts";
import type { Judgement } from "./finding.ts";
import { failed, ok, unless, warning } from "./finding.ts";

export interface SecretFile {
  readonly path: string;
  /** What is in it, as "cluster.secret". */
  readonly holds: string;
  /** Permission bits; null where there are none. */
  readonly mode: number | null;
}

export function judgeSecretFiles(files: readonly SecretFile[]): readonly Judgement[] {
  const problems = files.flatMap(({ path, holds, mode }) => {
    if (mode === null || (mode & 0o077) === 0) return [];
    const everybody = (mode & 0o004) !== 0;
    const who = everybody ? "every user of this machine" : "users of its group";
    const say = everybody ? failed : warning;
    return (mode & 0o044) === 0
      ? []
      : [say(`${path} has ${holds} and can be read by ${who}`, `type: chmod 600 ${path}`)];
  });
  const fine =
    files.length === 0
      ? "no secret lies in a file"
      : `only their owner can read ${files.map(({ path }) => path).join(", ")}`;
  return unless(problems, fine);
}

export interface ExposureFacts {
  readonly host: string;
  /** Whether callers must show a token there; null where that is not known. */
  readonly guarded: boolean | null;
}

export function judgeExposure({ host, guarded }: ExposureFacts): readonly Judgement[] {
  if (!isEverywhere(host) && isLoopback(host))
    return [ok(`listens on ${host}: only this machine reaches it`)];
  const where = isEverywhere(host) ? "on all addresses" : `on ${host}`;
  if (guarded) return [ok(`listens ${where}, and callers must show a token`)];
  return [
    warning(
      `listens ${where} and asks nobody for a token: whoever reaches it can run tasks`,
      "put a firewall or a proxy in front, or listen on 127.0.0.1 (http.host)",
    ),
  ];
}
