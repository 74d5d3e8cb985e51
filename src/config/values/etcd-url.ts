/** The setting `etcd.url`. Its password is never shown. */

import { BatonError } from "../../core/errors.ts";
import { parseEtcdUrl } from "../../platform/drivers/etcd/url.ts";
import { Mistake } from "../mistake.ts";
import { MASK } from "./store-url.ts";

/** The value that was meant, or a `Mistake`, which repeats nothing of a URL but its scheme. Empty: no etcd. */
export function readEtcd(found: unknown): string {
  if (typeof found !== "string")
    throw new Mistake("must be text such as http://host-a:2379,http://host-b:2379,http://host-c:2379");
  if (found === "") return "";
  try {
    if (parseEtcdUrl(found).user?.password !== MASK) return found;
  } catch (error) {
    if (!(error instanceof BatonError)) throw error;
    throw new Mistake(String(error.details["problem"]));
  }
  throw new Mistake(
    `has ${MASK} in place of its password, as \`baton config print\` shows it; write the real one`,
  );
}

/** For people, logs and errors. Only the passwords are touched, so that the rest is as it was written. */
export function maskedEtcd(url: string): string {
  return url
    .split(",")
    .map((part) => part.replace(/^(\s*\w+:\/\/[^/:]*):[^/]*@/, `$1:${MASK}@`))
    .join(",");
}
