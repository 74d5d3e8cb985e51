/** Calls to real nodes by callers who show something, or nothing. */

export interface Asked {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly text: string;
}

export interface AskOptions {
  readonly method?: string;
  readonly token?: string;
  readonly cookie?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function ask(url: string, path: string, options: AskOptions = {}): Promise<Asked> {
  const { method = "GET", token, cookie, body, headers } = options;
  const reader = new AbortController();
  const answer = await fetch(`${url}${path}`, {
    method,
    signal: AbortSignal.any([reader.signal, AbortSignal.timeout(15_000)]),
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(cookie !== undefined && { cookie, origin: url }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    reader.abort();
    return { status: answer.status, headers: answer.headers, body: {}, text: "" };
  }
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: objectIn(text), text };
}

function objectIn(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}
