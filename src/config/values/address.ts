/** Parses addresses: `10.0.0.5:2222`, `node-1.internal:2222`, `[::1]:2222`, and `:2222` to listen on all interfaces. */

import { isIP, isIPv6 } from "node:net";
import { isLoopback } from "../../core/access/permissions.ts";
import { Mistake } from "../mistake.ts";

export interface Address {
  /** Without brackets; empty for all addresses of the machine. */
  readonly host: string;
  readonly port: number;
}

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?):(\d{1,5})$/;

export function parseAddress(text: string): Address | null {
  const match = ADDRESS.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) return null;
  if (match[1] !== undefined && !isIPv6(match[1])) return null;
  return { host: match[1] ?? match[2] ?? "", port };
}

/** As it was written, or a `Mistake`. Only a listener may leave the host out, or take any port with 0. */
export function readAddress(text: string, listens: boolean): string {
  const address = parseAddress(text);
  if (address === null) {
    const scheme = /^https?:\/\/([^/]+)/.exec(text);
    const remedy = scheme ? `; write ${scheme[1]}` : "";
    throw new Mistake(`must be an address such as 10.0.0.5:2222, not ${JSON.stringify(text)}${remedy}`);
  }
  if (!listens && (address.host === "" || address.port === 0)) {
    throw new Mistake(`must have a host and a port, such as 10.0.0.5:2222, not ${JSON.stringify(text)}`);
  }
  return text;
}

export function isAddressRange(text: string): boolean {
  const [address, bits, ...rest] = text.split("/");
  const family = isIP(address!);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

export function isEverywhere(host: string): boolean {
  return host === "" || host === "0.0.0.0" || host === "::";
}

/** Whether a call to `target` would surely reach the listener at `own`. Names are not looked up. */
export function reaches(target: Address, own: Address): boolean {
  if (target.port !== own.port) return false;
  const isHere = ({ host }: Address): boolean => isEverywhere(host) || isLoopback(host);
  return target.host.toLowerCase() === own.host.toLowerCase() || (isHere(target) && isHere(own));
}

/** A name is not looked up: many a machine has its own at 127.0.1.1, and nobody else could reach it there. */
export function listeningHost(host: string): string {
  const bare = host.replace(/^\[|\]$/g, "");
  if (/^localhost$/i.test(bare)) return "127.0.0.1";
  return isIP(bare) === 0 ? "0.0.0.0" : bare;
}
