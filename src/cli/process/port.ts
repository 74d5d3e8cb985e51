/** Chooses the port to listen on: the given one, or a free one near the default if none is given. */

import { createServer } from "node:net";
import { CliFailure, EXIT } from "../failure.ts";

/** How many ports above the default are tried: more nodes than that on one machine are set up on purpose. */
const PORTS_TRIED = 100;

/** There is a moment between this look and the listening; whoever takes the port in it makes the start fail. */
export async function choosePort(host: string, port: number, explicit: boolean): Promise<number> {
  if (port === 0) return port;
  const last = explicit ? port : Math.min(port + PORTS_TRIED, 65_535);
  for (let candidate = port; candidate <= last; candidate++) {
    if (await isFree(host, candidate)) return candidate;
  }
  throw portInUse(host, port, explicit);
}

export function portInUse(host: string, port: number, explicit: boolean): CliFailure {
  const message = `http.port: port ${port} on ${host} is in use${explicit ? "" : `, and so are the ${PORTS_TRIED} after it`}`;
  const hint = "stop what listens there, choose another with --port, or take any free one with --port 0";
  return new CliFailure(EXIT.config, message, hint);
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(false);
      else if (error.code === "EACCES") {
        const message = `http.port: this user may not listen on port ${port}`;
        reject(new CliFailure(EXIT.config, message, "choose one above 1023"));
      } else if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") {
        const hint = "use 127.0.0.1 for this machine alone, 0.0.0.0 for all of its addresses";
        reject(new CliFailure(EXIT.config, `http.host: ${host} is not an address of this machine`, hint));
      } else reject(error);
    });
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
