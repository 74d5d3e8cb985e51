/** A script that the server runs as one step. It is sent by its digest, and in full to a server that has forgotten it. */

import { createHash } from "node:crypto";

export interface RedisScript {
  /** For errors and for people who read the code. */
  readonly name: string;
  readonly text: string;
  readonly digest: string;
}

export function redisScript(name: string, text: string): RedisScript {
  return { name, text, digest: createHash("sha1").update(text).digest("hex") };
}
