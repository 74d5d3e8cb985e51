/**
 * A TCP proxy that fails on demand, on a free port of the loopback.
 *
 *   forward   what comes is passed on
 *   freeze    connections stay open, also new ones, and nothing passes: a firewall that forgot us, a cable pulled out
 *   refuse    those that are open are cut, and new ones are refused
 *
 * Freezing can be limited to one direction: a connection that still takes what we send and never answers. What was held back
 * while frozen is passed on when it is forwarded again, as TCP would repeat it.
 */

import { connect, createServer, type Server, type Socket } from "node:net";

export type ProxyMode = "forward" | "freeze" | "refuse";
/** As seen from the client. */
export type Direction = "up" | "down";

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Frozen on its own. */
  stuck: boolean;
}

export class TcpProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #links = new Set<Link>();
  #server: Server | null = null;
  #port = 0;
  #mode: ProxyMode = "forward";
  #frozen: ReadonlySet<Direction> = new Set();

  private constructor(target: { host: string; port: number }) {
    this.#target = target;
  }

  /** `target` is a URL: its host and port are what the proxy stands before. */
  static async start(target: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(target);
    const proxy = new TcpProxy({ host: hostname, port: Number(port) });
    await proxy.#listen();
    return proxy;
  }

  get mode(): ProxyMode {
    return this.#mode;
  }

  get connections(): number {
    return this.#links.size;
  }

  through(target: string): string {
    const url = new URL(target);
    url.hostname = "127.0.0.1";
    url.port = String(this.#port);
    return url.href;
  }

  async forward(): Promise<void> {
    if (this.#mode === "refuse") await this.#listen();
    this.#mode = "forward";
    for (const link of this.#links) link.stuck = false;
    this.#freeze([]);
  }

  async freeze(...directions: Direction[]): Promise<void> {
    if (this.#mode === "refuse") await this.#listen();
    this.#mode = "freeze";
    this.#freeze(directions.length > 0 ? directions : ["up", "down"]);
  }

  /** Freezes one connection and leaves the others; it is known by the port from which the server sees it come. */
  freezeOne(serverSeesPort: number): void {
    const link = [...this.#links].find(({ server }) => server.localPort === serverSeesPort);
    if (!link) throw new Error(`no connection of this proxy reaches the server from port ${serverSeesPort}`);
    link.stuck = true;
    this.#apply(link);
  }

  async refuse(): Promise<void> {
    if (this.#mode === "refuse") return;
    this.#mode = "refuse";
    const server = this.#server!;
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
    this.reset();
    await closed;
    this.#freeze([]);
  }

  /** Cuts every open connection with a RST; new ones are as before. */
  reset(): void {
    for (const { client, server } of this.#links) {
      cutOff(client);
      cutOff(server);
    }
  }

  async stop(): Promise<void> {
    await this.refuse();
  }

  /** On the same port as before, so that those who come back find it. */
  async #listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#join(client));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", resolve);
    });
    this.#port = (server.address() as { port: number }).port;
  }

  #join(client: Socket): void {
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const link: Link = { client, server, stuck: false };
    this.#links.add(link);
    this.#pass("up", link, client, server);
    this.#pass("down", link, server, client);
    const cut = (): void => {
      this.#links.delete(link);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on("error", cut).on("close", cut);
    this.#apply(link);
  }

  #pass(direction: Direction, link: Link, from: Socket, to: Socket): void {
    from.on("data", (chunk) => {
      if (!to.write(chunk)) from.pause();
    });
    to.on("drain", () => {
      if (!this.#holds(direction, link)) from.resume();
    });
    from.on("end", () => to.end());
  }

  #freeze(directions: readonly Direction[]): void {
    this.#frozen = new Set(directions);
    for (const link of this.#links) this.#apply(link);
  }

  #apply(link: Link): void {
    if (this.#holds("up", link)) link.client.pause();
    else link.client.resume();
    if (this.#holds("down", link)) link.server.pause();
    else link.server.resume();
  }

  #holds(direction: Direction, link: Link): boolean {
    return link.stuck || this.#frozen.has(direction);
  }
}

/** A reset of a connection that is ending already is refused below Node, which then never closes it nor ends itself. */
function cutOff(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
