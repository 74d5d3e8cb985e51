/** A real node in the test that asks callers who they are, with a token for each permission. */

import { request } from "undici";
import { allows, PERMISSIONS } from "../../../src/core/access/permissions.ts";
import type { Permission } from "../../../src/core/access/permissions.ts";
import type { Operation } from "../../../src/api/operation.ts";
import type { Log } from "../../../src/platform/log.ts";
import type { BatonNode } from "../../../src/node/baton-node.ts";
import type { Scope } from "../../support/node-cleanup.ts";
import { nodeHere } from "../../support/node-here.ts";
import { eventually } from "../../support/wait.ts";

export const ADMIN = "the-fixed-token-of-tests-0123456789";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly body: never;
}

export interface Ask {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
}

export class AccessWorld {
  readonly node: BatonNode;
  readonly tokens: Readonly<Record<Permission, string>>;

  private constructor(node: BatonNode, tokens: Readonly<Record<Permission, string>>) {
    this.node = node;
    this.tokens = tokens;
  }

  static async open(
    t: Scope,
    settings: Readonly<Record<string, string>> = {},
    log?: Log,
  ): Promise<AccessWorld> {
    const node = await nodeHere(t, {
      http: true,
      ...(log && { log }),
      settings: { ACCESS__REQUIRED: "always", ACCESS__TOKEN: ADMIN, ...settings },
    });
    const { tokens } = node.services.access;
    const made = await Promise.all(
      PERMISSIONS.map(async (permission) => {
        const { text } = await tokens.create({ name: permission, permission, expiresInMs: null, by: "test" });
        return [permission, text] as const;
      }),
    );
    return new AccessWorld(node, Object.fromEntries(made) as Record<Permission, string>);
  }

  async ask(path: string, { method = "GET", body, headers = {}, token }: Ask = {}): Promise<Answer> {
    const answer = await request(`${this.node.url}${path}`, {
      method: method as "GET",
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      headersTimeout: 10_000,
    });
    const stream = String(answer.headers["content-type"]).startsWith("text/event-stream");
    if (stream) answer.body.destroy();
    const text = stream ? "" : await answer.body.text();
    return { status: answer.statusCode, headers: answer.headers, text, body: parsed(text) };
  }

  /** So many entries of the audit or more, the oldest first. They are written in the background. */
  audit<Entry>(count: number): Promise<Entry[]> {
    return eventually(`${count} entries of the audit`, async () => {
      const { body } = await this.ask("/cluster/journal?kind=audit&limit=100", { token: ADMIN });
      const { entries } = body as { entries: Entry[] };
      return entries.length >= count && entries.reverse();
    });
  }

  async user(name: string, password: string, permission: Permission): Promise<void> {
    const body = { name, password, permission };
    const { status, text } = await this.ask("/users", { method: "POST", token: ADMIN, body });
    if (status !== 201) throw new Error(`no user: ${status} ${text}`);
    if (text.includes("scrypt") || text.includes(password)) throw new Error(`it tells too much: ${text}`);
  }

  /** Logged in: the cookie as a browser would send it. */
  async session(user: string, password: string): Promise<string> {
    const { status, headers, text } = await this.ask("/session", {
      method: "POST",
      body: { user, password },
    });
    if (status !== 200) throw new Error(`no session: ${status} ${text}`);
    return String(headers["set-cookie"]).split(";", 1)[0]!;
  }
}

/** The permission that an operation needs, and the highest that is not enough. That each includes those below it is a rule of its own. */
export function justEnough({ permission }: Pick<Operation, "permission">): Permission[] {
  const at = PERMISSIONS.findIndex((each) => allows(each, permission));
  return PERMISSIONS.slice(Math.max(0, at - 1), at + 1);
}

function parsed(text: string): never {
  try {
    return JSON.parse(text) as never;
  } catch {
    return null as never;
  }
}
