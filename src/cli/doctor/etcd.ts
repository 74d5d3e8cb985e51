/** Reads and judges an etcd that elects the leader: a majority of its members must be available. */

import type { Clock } from "../../platform/clock.ts";
import { parseEtcdUrl } from "../../platform/drivers/etcd/url.ts";
import type { Judgement } from "./findings.ts";
import { failed, unless, warning } from "./findings.ts";

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

export interface EtcdQuestion {
  readonly url: string;
  readonly clock: Clock;
  readonly deadlineMs: number;
}

export function askEtcd(question: EtcdQuestion): Promise<EtcdMember[]> {
  const { endpoints } = parseEtcdUrl(question.url);
  return Promise.all(endpoints.map((endpoint) => askMember(endpoint, question)));
}

async function askMember(endpoint: string, { clock, deadlineMs }: EtcdQuestion): Promise<EtcdMember> {
  const { request } = await import("undici");
  const late = new AbortController();
  const callOff = clock.after(deadlineMs, () => late.abort());
  const get = async (path: string): Promise<unknown> => {
    const { body } = await request(`${endpoint}${path}`, { signal: late.signal });
    return JSON.parse(await body.text());
  };
  try {
    const [version, health] = await Promise.all([get("/version"), get("/health")]);
    const { etcdserver } = version as { etcdserver?: string };
    const { health: well, reason } = health as { health?: string; reason?: string };
    return {
      endpoint,
      version: etcdserver ?? null,
      healthy: well === "true",
      reason: well === "true" ? null : `is not healthy${reason ? `: ${reason}` : ""}`,
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = late.signal.aborted ? "not in time" : (code ?? message);
    return { endpoint, version: null, healthy: false, reason: `does not answer (${why})` };
  } finally {
    callOff();
  }
}
