/** Judges whether the node can listen on its port, or already does. */

import { choosePort } from "../process/port.ts";
import { CliFailure } from "../failure.ts";
import type { Judgement } from "./finding.ts";
import { failed, ok } from "./finding.ts";

export interface PortQuestion {
  readonly host: string;
  readonly port: number;
  readonly name: string;
  /** Where the node of this name was found to answer; null if it was not. */
  readonly ownUrl: string | null;
}

export async function judgePort({ host, port, name, ownUrl }: PortQuestion): Promise<readonly Judgement[]> {
  if (port === 0) return [ok("any free port will do (http.port is 0)")];
  if (ownUrl !== null) return [ok(`${name} listens at ${ownUrl}`)];
  try {
    await choosePort({ host, port, explicit: true });
    return [ok(`port ${port} on ${host} is free`)];
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return [failed(error.message, error.hint ?? "choose another with --port")];
  }
}
