/** The node's HTTP listener. */

import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { BatonError } from "../core/errors.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Access } from "../access/access.ts";
import { buildApp, type AppOptions } from "./app.ts";
import type { AccessCheck } from "./authenticate.ts";
import { bracketed } from "./origin-guard.ts";

export interface HttpServerOptions extends AppOptions {
  readonly port: number;
  /** Begins and ends with the listener, which alone uses it. */
  readonly access: AccessCheck & Pick<Access, "start" | "stop">;
  /** Called before it listens, for what else is spoken on the same port; what it gives back ends that. */
  readonly attach?: (server: Server) => () => Promise<void>;
}

/** How long requests may take after `stop`. A request is a few store calls; one that needs longer than this hangs. */
const STOP_MS_MAX = 5_000;

export class HttpServer extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #options: HttpServerOptions;
  readonly #sockets = new Set<Socket>();
  #app: FastifyInstance | null = null;
  #url: string | null = null;
  #detach: (() => Promise<void>) | null = null;

  constructor(platform: Pick<Platform, "clock" | "log">, options: HttpServerOptions) {
    super();
    this.#platform = platform;
    this.#options = options;
  }

  get url(): string {
    if (this.#url === null) throw new BatonError("STOPPED", "the HTTP server has not been started");
    return this.#url;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get streams(): number {
    return this.#app?.openStreams() ?? 0;
  }

  protected override async onStart(): Promise<void> {
    const { host, port, attach, access } = this.#options;
    const app = await buildApp(this.#platform, this.#options);
    await access.start();
    this.#detach = attach?.(app.server) ?? null;
    app.server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    try {
      await app.listen({ host, port });
    } catch (error) {
      await app.close();
      await access.stop();
      throw cannotListen(error as NodeJS.ErrnoException, host, port);
    }
    this.#app = app;
    this.#url = `http://${reachable(host)}:${(app.server.address() as AddressInfo).port}`;
  }

  /** Ends event streams and idle sockets at once, lets requests finish, and cuts what is left after a while. */
  protected override async onStop(): Promise<void> {
    const app = this.#app!;
    this.#app = null;
    const { clock, log } = this.#platform;
    const callOff = clock.after(STOP_MS_MAX, () => {
      log.warn({ sockets: this.#sockets.size }, "cutting connections that did not finish");
      for (const socket of this.#sockets) socket.destroy();
    });
    // Node counts a socket on which nothing was ever sent as busy, until its headers time out.
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
    // A server that closes waits for connections of peers as for any other.
    await this.#detach?.();
    this.#detach = null;
    await app.close();
    callOff();
    await this.#options.access.stop();
  }
}

function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return bracketed(host);
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): unknown {
  const remedy: Partial<Record<string, [string, string]>> = {
    EADDRINUSE: ["port", `port ${port} of ${host} is in use; stop what listens there or choose another port`],
    EACCES: ["port", `port ${port} needs rights that this process does not have; choose one above 1023`],
    EADDRNOTAVAIL: [
      "host",
      `${host} is not an address of this machine; use 127.0.0.1, 0.0.0.0 or one that is`,
    ],
    ENOTFOUND: [
      "host",
      `${host} is not a known host name; use 127.0.0.1, 0.0.0.0 or an address of this machine`,
    ],
    ERR_SOCKET_BAD_PORT: ["port", `${port} is not a port; choose one from 0 to 65535`],
  };
  const [field, message] = remedy[error.code ?? ""] ?? [];
  if (message === undefined) return error;
  return new BatonError("BAD_CONFIG", message, { field, host, port }, { cause: error });
}
