/** The setting `nodes`: the names of the nodes, each with its URL. */

import { NODE_NAME } from "../../core/ids.ts";
import type { Address } from "./address.ts";
import { Mistake } from "../mistake.ts";

export type NodeMap = Readonly<Record<string, string>>;

const EXAMPLE = "a=http://10.0.0.1:8420,b=http://10.0.0.2:8420";

/** From a variable or a flag: JSON, or names and URLs with commas between. */
export function nodesFromText(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) {
    try {
      return JSON.parse(trimmed);
    } catch {
      throw new Mistake(`is not valid JSON; write it in full, or as ${EXAMPLE}`);
    }
  }
  const nodes = new Map<string, string>();
  for (const part of trimmed.split(",").map((each) => each.trim())) {
    if (part === "") continue;
    const cut = part.indexOf("=");
    if (cut < 1) throw new Mistake(`must be written as ${EXAMPLE}, not ${JSON.stringify(part)}`);
    const name = part.slice(0, cut).trim();
    if (nodes.has(name)) throw new Mistake(`has ${name} twice`);
    nodes.set(name, part.slice(cut + 1).trim());
  }
  return Object.fromEntries(nodes);
}

/** Names checked, URLs without their last slash; or a `Mistake` that names the node. */
export function readNodes(found: unknown): NodeMap {
  if (found === null || typeof found !== "object" || Array.isArray(found)) {
    throw new Mistake("must be a map of names and URLs, such as `node-1: http://10.0.0.1:8420`");
  }
  const nodes = Object.entries(found).map(([name, url]): [string, string] => {
    if (!NODE_NAME.test(name)) {
      throw new Mistake(
        `has a name that is none: ${JSON.stringify(name)} must consist of letters, digits and ._- and begin and end with a letter or digit`,
      );
    }
    return [name, readUrl(name, url)];
  });
  const byUrl = Map.groupBy(nodes, ([, url]) => url.toLowerCase());
  for (const [url, same] of byUrl) {
    if (same.length > 1) {
      const names = same.map(([name]) => name).join(" and ");
      throw new Mistake(`has ${url} for ${names}; every node has a URL of its own`);
    }
  }
  return Object.fromEntries(nodes);
}

/** Null where the port in the URL belongs to something in front of the node, which ends TLS for it. */
export function listenerOf(url: string): Address | null {
  const { protocol, hostname, port } = new URL(url);
  return protocol === "http:" ? { host: hostname, port: Number(port || 80) } : null;
}

function readUrl(name: string, url: unknown): string {
  const wanted = "a URL such as http://10.0.0.1:8420, without a path";
  if (typeof url !== "string") throw new Mistake(`must have ${wanted}, for ${name}`);
  const parsed = URL.parse(url);
  const plain = /^https?:\/\/[^\s/?#@]+\/?$/i.test(url);
  if (parsed === null || !plain || parsed.port === "0") {
    // What stands before an @ may be a password.
    const shown = url.includes("@") ? "" : `, not ${JSON.stringify(url)}`;
    throw new Mistake(`must have ${wanted}, for ${name}${shown}`);
  }
  return url.replace(/\/$/, "");
}
