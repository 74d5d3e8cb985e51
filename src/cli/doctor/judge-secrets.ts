/** Judges the secrets: which users can read them, and which callers reach the node without one. */

import { isEverywhere } from "../../config/values/address.ts";
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

/** Of what the configuration says; whether it is so, the nodes themselves are asked (judge-nodes.ts). */
export function judgeExposure({ host, asks }: { host: string; asks: boolean }): readonly Judgement[] {
  const callers = asks
    ? "callers must show a token"
    : "only this machine reaches it, and nobody on it is asked for a token";
  return [ok(`listens on ${isEverywhere(host) ? "all addresses" : host}: ${callers}`)];
}
