/** The setting `redis.url`. Its password is never shown. */

import { BatonError } from "../../core/errors.ts";
import { parseRedisUrl } from "../../platform/drivers/redis/url.ts";
import { Mistake } from "../mistake.ts";
import { MASK } from "./store-url.ts";

/** The value that was meant, or a `Mistake`, which repeats nothing of a URL but its scheme. Empty: no Redis. */
export function readRedis(found: unknown): string {
  if (typeof found !== "string") throw new Mistake("must be a URL such as redis://user:password@host:6379/0");
  if (found === "") return "";
  try {
    if (parseRedisUrl(found).password !== MASK) return found;
  } catch (error) {
    if (!(error instanceof BatonError)) throw error;
    throw new Mistake(String(error.details["problem"]));
  }
  throw new Mistake(
    `has ${MASK} in place of its password, as \`baton config print\` shows it; write the real one`,
  );
}

/** For people, logs and errors. Only the password is touched, so that the rest is as it was written. */
export function maskedRedis(url: string): string {
  return url.replace(/^(\w+:\/\/[^/:]*):[^/]*@/, `$1:${MASK}@`);
}
