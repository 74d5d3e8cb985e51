/** The settings of the HTTP listener and of the dashboard. */

import type { Setting } from "./setting-definition.ts";

export const HTTP_SETTINGS = [
  {
    path: "http.host",
    kind: "string",
    default: "127.0.0.1",
    flag: "--host",
    about: "Address to listen on. `0.0.0.0` opens the node to the network.",
  },
  {
    path: "http.port",
    kind: "integer",
    default: 8420,
    min: 0,
    max: 65535,
    flag: "--port",
    about:
      "Port to listen on. 0 takes any free one; if it was not set and is in use, the next free one is taken.",
  },
  {
    path: "http.url",
    kind: "string",
    default: "",
    defaultIs: "the address it listens on, or the host name for `0.0.0.0`",
    pattern: /^(?:https?:\/\/[^\s/?#@]+)?$/,
    patternIs: "be an address such as http://host:8420, without a path",
    about: "How others reach this node, as `http://host:port`; shown to them and to callers.",
  },
  {
    path: "http.body_limit",
    kind: "size",
    default: "1MiB",
    min: "1KiB",
    max: "1GiB",
    about: "Largest request body.",
    smaller: "Bulk submits and large payloads are refused with 413.",
  },
  {
    path: "http.base_path",
    kind: "string",
    default: "/",
    pattern: /^\/(?:[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*\/?)?$/,
    patternIs: "begin with a slash, as /baton",
    about:
      "Where a proxy mounts this node, as `/baton`. The dashboard and the whole API answer below it too; nodes among themselves use the addresses without it.",
  },
  {
    path: "dashboard.enabled",
    kind: "boolean",
    default: true,
    about: "Whether this node serves the dashboard at `/`.",
  },
] as const satisfies readonly Setting[];
