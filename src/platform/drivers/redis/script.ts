/** A script that the server runs atomically. It is sent by its digest, and in full to a server that does not have it. */

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
