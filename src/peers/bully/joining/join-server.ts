/**
 * The manager API on a separate listener, for callers with the cluster's user and password. `/join` and `/remove`
 * change the membership. `/election` and `/coordinator` carry no proof, so here they are hints: this node becomes a
 * candidate if there is no leader. Connections of peers are accepted here too, because a joining node knows no other
 * address.
 */

import { hash, timingSafeEqual } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import Fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { NODE_NAME, type NodeName } from "../../../core/ids.ts";
import type { Log } from "../../../platform/log.ts";
import type { Platform } from "../../../platform/platform.ts";
import { Lifecycle } from "../../../platform/service.ts";
import type { BullyCoordination } from "../coordination.ts";
import { addressField } from "../../rpc/bully-messages.ts";
import { errorReply, MESSAGE_BYTES_MAX, readMessage } from "../../rpc/peer-rpc.ts";

export interface JoinServerOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly pass: string;
  readonly coordination: Pick<
    BullyCoordination,
    "changes" | "peers" | "leader" | "hint" | "manager" | "running"
  >;
  /** Accepts connections of peers at this server; the returned function ends that. */
  readonly attach?: (server: Server) => () => Promise<void>;
}

/** Slow senders hold a socket no longer than this. */
const REQUEST_TIMEOUT_MS = 10_000;
const CHECK_INTERVAL_MS = 1_000;
/** A join waits for a majority; whatever needs longer than this hangs. */
const STOP_MS_MAX = 5_000;

const id = z
  .string()
  .regex(NODE_NAME, "must be the name of a node")
  .transform((text) => text as NodeName);
/** Host and port, as other systems send it (docs/compatibility.md); a URL is accepted too. */
const addr = z
  .string()
  .transform((text) => (/^https?:\/\//.test(text) ? text : `http://${text}`))
  .pipe(addressField);
const joinBody = z.strictObject({ id, addr });
const idBody = z.object({ id });

export class JoinServer extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #o: JoinServerOptions;
  readonly #expected: Buffer;
  #app: FastifyInstance | null = null;
  #url = "";
  #down = false;
  #detach: () => Promise<void> = async () => {};

  constructor(platform: Pick<Platform, "clock" | "log">, options: JoinServerOptions) {
    super();
    this.#platform = platform;
    this.#o = options;
    for (const field of ["user", "pass"] as const) {
      // An empty secret would admit every caller.
      if (options[field] === "") throw new BatonError("BAD_CONFIG", `${field} must not be empty`, { field });
    }
    this.#expected = digest(`${options.user}:${options.pass}`);
  }

  get url(): string {
    if (this.#url === "") throw new BatonError("STOPPED", "the join server has not been started");
    return this.#url;
  }

  goDown(): void {
    this.#down = true;
  }

  protected async onStart(): Promise<void> {
    const { host, port } = this.#o;
    this.#down = false;
    const app = this.#build();
    this.#detach = this.#o.attach?.(app.server) ?? this.#detach;
    try {
      await app.listen({ host, port });
    } catch (error) {
      await app.close();
      const { code } = error as NodeJS.ErrnoException;
      throw new BatonError(
        "BAD_CONFIG",
        `the join server cannot listen at ${host}:${port} (${code ?? String(error)}); see manager.addr`,
        { field: "manager.addr" },
        { cause: error },
      );
    }
    this.#app = app;
    this.#url = `http://${host.includes(":") ? `[${host}]` : host}:${(app.server.address() as AddressInfo).port}`;
  }

  protected async onStop(): Promise<void> {
    this.#down = true;
    const app = this.#app!;
    this.#app = null;
    const callOff = this.#platform.clock.after(STOP_MS_MAX, () => app.server.closeAllConnections());
    // A server that closes waits for connections of peers as for any other.
    await this.#detach();
    await app.close();
    callOff();
  }

  #build(): FastifyInstance {
    const app = Fastify({
      logger: false,
      bodyLimit: MESSAGE_BYTES_MAX,
      requestTimeout: REQUEST_TIMEOUT_MS,
      forceCloseConnections: "idle",
      http: {
        headersTimeout: REQUEST_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: CHECK_INTERVAL_MS,
      },
    });
    // Existing clients of this API send JSON under any content type.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
    app.setErrorHandler((error, _request, reply) => answer(reply, asBatonError(error), this.#platform.log));
    app.setNotFoundHandler((request, reply) => {
      answer(
        reply,
        new BatonError("NOT_FOUND", `there is nothing at ${request.url.slice(0, 200)}`),
        this.#platform.log,
      );
    });
    const { coordination } = this.#o;
    app.get("/heartbeat", (_request, reply) => {
      const up = !this.#down && coordination.running;
      return reply.code(up ? 200 : 503).send();
    });
    this.#guarded(app, "/join", async (body) => {
      const { id, addr } = readMessage(joinBody, body);
      await coordination.changes.passJoin(id, addr);
      return this.#roll();
    });
    this.#guarded(app, "/remove", async (body) => {
      await coordination.changes.remove(readMessage(idBody, body).id);
      return null;
    });
    this.#guarded(app, "/election", async () => {
      coordination.hint();
      return null;
    });
    this.#guarded(app, "/coordinator", async (body) => {
      readMessage(idBody, body);
      coordination.hint();
      return null;
    });
    return app;
  }

  #guarded(app: FastifyInstance, path: string, act: (body: string) => Promise<object | null>): void {
    app.post(path, async (request, reply) => {
      if (!this.#allowed(request.headers.authorization)) {
        // Existing clients of this API expect 400; 401 would be the usual status.
        throw new BatonError("BAD_REQUEST", "the cluster's user and password are missing or wrong", {
          field: "authorization",
        });
      }
      const answer = await act(typeof request.body === "string" ? request.body : "");
      if (answer === null) return reply.code(200).send();
      return reply.code(200).send(answer);
    });
  }

  /** Both sides are hashed, so that the comparison takes as long for a wrong length as for a wrong letter. */
  #allowed(header: string | undefined): boolean {
    const [, encoded = ""] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? "") ?? [];
    const given = digest(Buffer.from(encoded, "base64").toString("utf8"));
    return timingSafeEqual(given, this.#expected) && encoded !== "";
  }

  /** The answer to a join: the join servers of all nodes. For a node without one, or not heard of yet, the address at which it is known. */
  #roll(): object {
    const { coordination } = this.#o;
    const peers = coordination.peers.names().map((name) => {
      const address = coordination.peers.address(name);
      const known = address === null ? "" : new URL(address).host;
      return [name, coordination.manager(name) ?? known] as const;
    });
    return { peers: Object.fromEntries(peers), leader: coordination.leader()?.leader ?? "" };
  }
}

function answer(reply: FastifyReply, error: unknown, log: Log): void {
  const { status, headers = {}, body } = errorReply(error, log);
  reply.code(status).headers(headers).send(body);
}

/** What Fastify refuses by itself: a body that is too large, a request that is no HTTP. */
function asBatonError(error: unknown): unknown {
  const { statusCode, code } = error as { statusCode?: number; code?: string };
  if (error instanceof BatonError || statusCode === undefined || statusCode >= 500) return error;
  if (statusCode === 413)
    return new BatonError("BODY_TOO_LARGE", `the body is larger than ${MESSAGE_BYTES_MAX} bytes`);
  return new BatonError("BAD_REQUEST", code ?? "the request cannot be read");
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
