/** The controller API as an agent in any language calls it: plain HTTP, plain JSON. */

export interface Told {
  readonly status: number;
  readonly body: any;
  readonly headers: Headers;
}

export interface Leased {
  readonly lease_id: string;
  readonly leader_epoch: number;
  readonly tasks: readonly {
    readonly job_id: string;
    readonly job_epoch: number;
    readonly payload: unknown;
  }[];
}

export class ControllerCalls {
  readonly #url: () => string;

  constructor(node: { readonly url: string }) {
    this.#url = () => node.url;
  }

  async call(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Told> {
    const answer = await fetch(this.#url() + path, {
      method,
      signal: signal ?? AbortSignal.timeout(20_000),
      ...(body !== undefined && {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? null : JSON.parse(text), headers: answer.headers };
  }

  get(path: string): Promise<Told> {
    return this.call("GET", path);
  }

  post(path: string, body: unknown): Promise<Told> {
    return this.call("POST", path, body);
  }

  async submit(fields: object = {}): Promise<string> {
    const { status, body } = await this.post("/v1/jobs", { task: "work", ...fields });
    if (status !== 200) throw new Error(`not submitted: ${JSON.stringify(body)}`);
    return body.job_id;
  }

  /** Of jobs that are there. */
  async lease(fields: object = {}): Promise<Leased> {
    const { status, body } = await this.ask(fields);
    if (status !== 200) throw new Error(`not leased: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  ask(fields: object = {}, signal?: AbortSignal): Promise<Told> {
    const request = { agent: "ada", capabilities: ["work"], timeout_ms: 5_000, ...fields };
    return this.call("POST", "/v1/leases", request, signal);
  }

  result(leased: Leased, fields: object = {}): Promise<Told> {
    return this.post("/v1/results", resultOf(leased, fields));
  }

  job(id: string): Promise<any> {
    return this.get(`/v1/jobs/${id}`).then(({ body }) => body);
  }
}

/** A good result of the first task of a lease. */
export function resultOf({ lease_id, leader_epoch, tasks }: Leased, fields: object = {}): object {
  const { job_id, job_epoch } = tasks[0]!;
  return { lease_id, job_id, job_epoch, leader_epoch, status: "succeeded", ...fields };
}

/** Server-sent events, one after the other. */
export async function* eventsOf(
  url: string,
  signal: AbortSignal,
  headers: Record<string, string> = {},
): AsyncGenerator<{ id: string | null; event: string; data: any }> {
  const answer = await fetch(url, { signal, headers });
  if (answer.status !== 200) throw new Error(`no events: ${answer.status} ${await answer.text()}`);
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer.body!) {
    text += decoder.decode(chunk, { stream: true });
    for (let cut = text.indexOf("\n\n"); cut >= 0; cut = text.indexOf("\n\n")) {
      const lines = text.slice(0, cut).split("\n");
      text = text.slice(cut + 2);
      const field = (name: string): string | null =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
      const event = field("event");
      if (event !== null) yield { id: field("id"), event, data: JSON.parse(field("data")!) };
    }
  }
}
