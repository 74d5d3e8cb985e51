/** The members of an etcd, each asked whether it is well. */

import { request } from "undici";
import { parseEtcdUrl } from "../../platform/drivers/etcd-url.ts";
import type { EtcdMember } from "./judge-etcd.ts";

export function askEtcd(url: string, deadlineMs: number): Promise<EtcdMember[]> {
  return Promise.all(parseEtcdUrl(url).endpoints.map((endpoint) => askMember(endpoint, deadlineMs)));
}

async function askMember(endpoint: string, deadlineMs: number): Promise<EtcdMember> {
  const get = async (path: string): Promise<unknown> => {
    const { body } = await request(`${endpoint}${path}`, { signal: AbortSignal.timeout(deadlineMs) });
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
    return { endpoint, version: null, healthy: false, reason: `does not answer (${reasonOf(error)})` };
  }
}

function reasonOf(error: unknown): string {
  const { code, name, message } = error as NodeJS.ErrnoException;
  return name === "TimeoutError" ? "too late" : (code ?? message);
}
