/**
 * Where there are no signals, a supervisor asks its child to stop by a message. The rest of the process receives it as
 * a signal, so that every command that handles one also handles the other.
 */

import { isMessage, SUPERVISOR_VARIABLE, type ToChild } from "./messages.ts";

export function stopAsSignal(): void {
  if (process.env[SUPERVISOR_VARIABLE] !== String(process.ppid) || !process.send) return;
  process.on("message", (message) => {
    if (isMessage<Extract<ToChild, { baton: "stop" }>>(message, "stop")) process.emit("SIGTERM", "SIGTERM");
  });
}
