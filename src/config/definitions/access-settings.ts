/** The settings of access: authentication, rate limits and trusted proxies. */

import type { Setting } from "./setting-definition.ts";

export const ACCESS_SETTINGS = [
  {
    path: "access.required",
    kind: "enum",
    default: "auto",
    values: ["auto", "always"],
    about:
      "Whether callers must show a token or log in. `auto` asks everybody, unless the node listens on loopback only: then whoever is on the machine may do everything. `always` asks there too.",
  },
  {
    path: "access.token",
    kind: "string",
    default: "",
    secret: true,
    ownerOnly: true,
    about:
      "A token with the permission `admin` that is known before the first start, for automation; at least 32 characters, as `baton secret create` makes them. Without it a node that has no credentials makes an admin token by itself.",
  },
  {
    path: "http.rate_limit",
    kind: "integer",
    default: 0,
    min: 0,
    max: 1_000_000,
    about:
      "Most requests in a second of each token, user or, where nobody is asked, address; more are refused with `429` and `Retry-After`. 0 for no limit.",
  },
  {
    path: "http.trusted_proxies",
    kind: "list",
    default: [],
    about:
      "Proxies in front of this node, whose word on the caller's address and on https (`X-Forwarded-For`, `X-Forwarded-Proto`) is believed. That of others is not.",
  },
] as const satisfies readonly Setting[];
