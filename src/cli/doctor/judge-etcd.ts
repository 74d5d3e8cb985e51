/** Judges an etcd that elects the leader: a majority of its members must be available. */

import type { Judgement } from "./finding.ts";
import { failed, unless, warning } from "./finding.ts";

export interface EtcdMember {
  readonly endpoint: string;
  /** Null if it did not answer. */
  readonly version: string | null;
  readonly healthy: boolean;
  readonly reason: string | null;
}

const MAJOR_MIN = 3;
const MINOR_MIN = 4;

export function judgeEtcd(members: readonly EtcdMember[]): readonly Judgement[] {
  const away = members.filter(({ version, healthy }) => version === null || !healthy);
  const problems = away.map(({ endpoint, reason }) => {
    const how = `etcd at ${endpoint} ${reason ?? "is not healthy"}`;
    return away.length === members.length
      ? failed(
          `${how}: nobody can be elected`,
          "start it, or correct --etcd; `etcdctl endpoint health` tells more",
        )
      : warning(`${how}; the others are asked instead`, "start it again before the next one fails");
  });
  for (const { endpoint, version } of members) {
    const [major = 0, minor = 0] = (version ?? "9").split(".").map(Number);
    if (major > MAJOR_MIN || (major === MAJOR_MIN && minor >= MINOR_MIN)) continue;
    problems.push(failed(`etcd at ${endpoint} has version ${version}, and 3.4 is needed`, "upgrade it"));
  }
  if (members.length === 2) {
    problems.push(
      warning(
        "two members of etcd are no safer than one: the loss of either stops both",
        "run one, three or five",
      ),
    );
  }
  const versions = [...new Set(members.map(({ version }) => version))].join(", ");
  return unless(
    problems,
    `${members.length === 1 ? "its member answers" : `all ${members.length} members answer`} (etcd ${versions})`,
  );
}
