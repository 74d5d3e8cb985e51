/**
 * Tests whether a process listens at an address. `refusing`: the machine itself reports that none does, so the process
 * has ended. `silent`: no answer from the machine or the network, which proves nothing.
 */

import { connect } from "node:net";
import type { Clock } from "../../../platform/clock.ts";

export type Probe = (address: string, deadlineMs: number) => Promise<"listening" | "refusing" | "silent">;

export function tcpProbe(clock: Clock): Probe {
  return (address, deadlineMs) => {
    if (!URL.canParse(address)) return Promise.resolve("silent");
    const { hostname, port, protocol } = new URL(address);
    const { promise, resolve } = Promise.withResolvers<"listening" | "refusing" | "silent">();
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port) || (protocol === "https:" ? 443 : 80),
    });
    const callOff = clock.after(deadlineMs, () => resolve("silent"));
    socket.once("connect", () => resolve("listening"));
    socket.once("error", (error) => resolve(isRefusal(error) ? "refusing" : "silent"));
    return promise.finally(() => {
      callOff();
      socket.destroy();
    });
  };
}

/** Of a name with several addresses every one has to refuse: the process may listen on any of them. */
function isRefusal(error: Error): boolean {
  const each = error instanceof AggregateError ? error.errors : [error];
  return each.every((one) => (one as NodeJS.ErrnoException).code === "ECONNREFUSED");
}
