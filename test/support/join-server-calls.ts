/** Speaks to a join server as a foreign node or a script does: Basic authentication, JSON, an address of host and port. */

export const CREDENTIALS = { user: "cluster_user", pass: "cluster_pass" };

export interface ManagerCall {
  readonly method?: string;
  /** Null for none. */
  readonly credentials?: { readonly user: string; readonly pass: string } | null;
  /** An object is sent as JSON, text as it is. */
  readonly body?: unknown;
}

export interface ManagerAnswer {
  readonly status: number;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export async function askManager(
  address: string,
  path: string,
  call: ManagerCall = {},
): Promise<ManagerAnswer> {
  const { method = "POST", credentials = CREDENTIALS, body } = call;
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (credentials) {
    const text = `${credentials.user}:${credentials.pass}`;
    headers["authorization"] = `Basic ${Buffer.from(text).toString("base64")}`;
  }
  const answer = await fetch(`http://${address}${path}`, {
    method,
    headers,
    signal: AbortSignal.timeout(10_000),
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, text, body: text === "" ? {} : JSON.parse(text) };
}

/** Null when nobody answers. */
export async function heartbeatOf(address: string): Promise<number | null> {
  try {
    const answer = await fetch(`http://${address}/heartbeat`, { signal: AbortSignal.timeout(1_000) });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return null;
  }
}
