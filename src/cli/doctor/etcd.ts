/** Reads and judges an etcd that elects the leader: a majority of its members must be available. */

import type { CallError } from "../../client/client-error.ts";
import { HttpConnection } from "../../client/connection/connection.ts";
import { parseEtcdUrl } from "../../platform/drivers/server-url.ts";
import { failed, isAtLeast, judged, type Judgement, type Question, warning } from "./findings.ts";

export interface EtcdMember {
  readonly endpoint: string;
  readonly version: string | null;
  readonly healthy: boolean;
  readonly reason: string | null;
}

const VERSION_MIN = [3, 4] as const;

export function judgeEtcd(members: readonly EtcdMember[]): readonly Judgement[] {
  const away = members.filter(({ version, healthy }) => version === null || !healthy);
  const old = members.filter(({ version }) => version !== null && !isAtLeast(version, VERSION_MIN));
  const versions = [...new Set(members.map(({ version }) => version))].join(", ");
  return judged(
    [
      ...away.map(({ endpoint, reason }) => {
        const how = `etcd at ${endpoint} ${reason ?? "is not healthy"}`;
        const remedy = "start it, or correct --etcd; `etcdctl endpoint health` tells more";
        return away.length === members.length
          ? failed(`${how}: nobody can be elected`, remedy)
          : warning(`${how}; the others are asked instead`, "start it again before the next one fails");
      }),
      ...old.map(({ endpoint, version }) =>
        failed(`etcd at ${endpoint} has version ${version}, and 3.4 is needed`, "upgrade it"),
      ),
      members.length === 2 &&
        warning(
          "two members of etcd are no safer than one: the loss of either stops both",
          "run one, three or five",
        ),
    ],
    `${members.length === 1 ? "its member answers" : `all ${members.length} members answer`} (etcd ${versions})`,
  );
}

export function askEtcd(question: Question): Promise<EtcdMember[]> {
  const { endpoints } = parseEtcdUrl(question.url);
  return Promise.all(endpoints.map((endpoint) => askMember(endpoint, question)));
}

async function askMember(endpoint: string, { clock, deadlineMs }: Question): Promise<EtcdMember> {
  // Not with fetch, which refuses some ports.
  const connection = new HttpConnection(endpoint, clock);
  const get = async (path: string): Promise<unknown> =>
    JSON.parse((await connection.call({ method: "GET", path }, deadlineMs)).body);
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
    const { code, systemCode, message } = error as CallError;
    const why = code === "TIMEOUT" ? "not in time" : (systemCode ?? message);
    return { endpoint, version: null, healthy: false, reason: `does not answer (${why})` };
  } finally {
    await connection.close();
  }
}
