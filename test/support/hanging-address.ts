import { createServer, type AddressInfo, type Socket } from "node:net";
import { atEnd, type Scope } from "./node-cleanup.ts";

/** Of something that takes connections and never answers, as a machine that hangs. */
export async function hangingAddress(t: Scope): Promise<string> {
  const server = createServer();
  const taken = new Set<Socket>();
  server.on("connection", (socket) => taken.add(socket.on("error", () => {})));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(t, () => {
    server.close();
    for (const socket of taken) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
