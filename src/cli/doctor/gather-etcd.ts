/** Reads the health of each member of an etcd cluster. */

import { request } from "undici";
import type { Clock } from "../../platform/clock.ts";
import { parseEtcdUrl } from "../../platform/drivers/etcd/url.ts";
import type { EtcdMember } from "./judge-etcd.ts";

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
