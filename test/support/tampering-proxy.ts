/** Stands between two nodes, sees every byte, and may change, repeat or add some. */

import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

/** Of one connection. What is returned is passed on in place of the chunk. */
export type Tamper = (direction: "up" | "down", chunk: Buffer, count: number) => Buffer;

export interface TamperingProxy {
  readonly url: string;
  readonly up: readonly Buffer[];
  close(): Promise<void>;
}

export async function tamperingProxy(target: string, tamper: Tamper): Promise<TamperingProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const up: Buffer[] = [];
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true });
    const counts = { up: 0, down: 0 };
    const pass = (direction: "up" | "down", from: Socket, to: Socket): void => {
      sockets.add(from);
      from.on("data", (chunk) => {
        if (direction === "up") up.push(Buffer.from(chunk));
        to.write(tamper(direction, Buffer.from(chunk), counts[direction]++));
      });
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    };
    pass("up", client, upstream);
    pass("down", upstream, client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    up,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
