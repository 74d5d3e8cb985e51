/**
 * Where there are no signals, the wish of a node-controller that its child should stop comes as a message. To the rest of
 * the process it looks like a signal, so that every command that can be stopped by one can be stopped by the other.
 */

import { isMessage, SUPERVISOR_VARIABLE, type ToChild } from "./messages.ts";

export function stopAsSignal(): void {
  if (process.env[SUPERVISOR_VARIABLE] !== String(process.ppid) || !process.send) return;
  process.on("message", (message) => {
    if (isMessage<Extract<ToChild, { baton: "stop" }>>(message, "stop")) process.emit("SIGTERM", "SIGTERM");
  });
}
