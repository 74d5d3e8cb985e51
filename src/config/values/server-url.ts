/** The settings `redis.url` and `etcd.url`: URLs of servers, whose passwords are never shown. Empty: no such server. */

import { BatonError } from "../../core/errors.ts";
import { parseEtcdUrl } from "../../platform/drivers/etcd/url.ts";
import { parseRedisUrl } from "../../platform/drivers/redis/url.ts";
import { Mistake } from "../mistake.ts";

/** What is shown in place of a password. */
export const MASK = "***";
/** For a password that was copied from what is shown. */
export const MASKED = `has ${MASK} in place of its password, as \`baton config print\` shows it; write the real one`;

/** The value that was meant, or a `Mistake`, which repeats nothing of a URL but its scheme. */
export function readServerUrl(kind: "redis" | "etcd", found: unknown): string {
  if (typeof found !== "string") throw new Mistake(`must be ${EXAMPLES[kind]}`);
  if (found === "") return "";
  try {
    if (PASSWORD[kind](found) !== MASK) return found;
  } catch (error) {
    if (!(error instanceof BatonError)) throw error;
    throw new Mistake(String(error.details["problem"]));
  }
  throw new Mistake(MASKED);
}

const EXAMPLES = {
  redis: "a URL such as redis://user:password@host:6379/0",
  etcd: "text such as http://host-a:2379,http://host-b:2379,http://host-c:2379",
} as const;

const PASSWORD = {
  redis: (url: string) => parseRedisUrl(url).password,
  etcd: (urls: string) => parseEtcdUrl(urls).user?.password,
} as const;

/** For people, logs and errors: of one URL, or of several with commas between them. The rest is as it was written. */
export function maskedUrl(urls: string): string {
  return urls
    .split(/,(?=\s*\w+:\/\/)/)
    .map((url) => url.replace(/^(\s*\w+:\/\/[^/:]*):[^/]*@/, `$1:${MASK}@`))
    .join(",");
}
