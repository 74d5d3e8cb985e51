/** The permissions of callers. Each permission includes those before it. */

import { BatonError } from "../errors.ts";

export const PERMISSIONS = ["read", "submit", "operate", "admin"] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** `public` needs no credentials, and its reply must reveal nothing. */
export type NeededPermission = Permission | "public";

const RANKED: readonly NeededPermission[] = ["public", ...PERMISSIONS];

export function allows(has: Permission, needs: NeededPermission): boolean {
  return RANKED.indexOf(has) >= RANKED.indexOf(needs);
}

export function isPermission(text: unknown): text is Permission {
  return PERMISSIONS.some((each) => each === text);
}

/**
 * A caller. `setting`: it has `access.token`. `loopback`: where no credentials are asked for. `node`: a node of this
 * cluster that calls on its own account. `application`: known to the program in whose server the API is mounted.
 */
export interface Principal {
  readonly kind: "token" | "user" | "setting" | "loopback" | "node" | "application";
  readonly name: string;
  readonly permission: Permission;
  readonly id: string | null;
}

export const LOOPBACK: Principal = { kind: "loopback", name: "loopback", permission: "admin", id: null };

/** Names of tokens and users go into headers and logs, so they are plain. */
export const ACCESS_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._@-]{0,62}[A-Za-z0-9])?$/;

/** `token:ci`, `user:ann`, `loopback`. */
export function principalText({ kind, name }: Pick<Principal, "kind" | "name">): string {
  return kind === "loopback" ? kind : `${kind}:${name}`;
}

export function requirePermission(principal: Principal | null, needs: NeededPermission): void {
  if (principal === null ? needs === "public" : allows(principal.permission, needs)) return;
  const [name, has] = principal ? [principalText(principal), principal.permission] : ["the caller", null];
  throw new BatonError(
    "FORBIDDEN",
    `this needs the permission ${needs}, and ${name} has ${has ?? "none"}; an admin can create a token that has it`,
    { needs, has, principal: principal && name },
  );
}

// ---------------------------------------------------------------- on the way from one node to another

export function writePrincipal({ kind, name, permission, id }: Principal): string {
  return [permission, kind, name, ...(id === null ? [] : [id])].join(" ");
}

const KINDS: readonly Principal["kind"][] = ["token", "user", "setting", "loopback", "node", "application"];
const PLAIN = /^[A-Za-z0-9._@:-]{1,128}$/;

/** Programs name their callers as they like; between nodes and in logs names are plain. */
export function plainName(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9._@:-]/g, "_").slice(0, 128);
}

export function readPrincipal(text: string): Principal | null {
  const [permission, kind, name, id = null, ...rest] = text.split(" ");
  const known = KINDS.find((each) => each === kind);
  if (rest.length > 0 || !isPermission(permission) || known === undefined) return null;
  if (name === undefined || !PLAIN.test(name) || (id !== null && !PLAIN.test(id))) return null;
  return { kind: known, name, permission, id };
}

/**
 * Whether only this machine can reach a listener at a host. One function decides both whether callers are asked for
 * credentials and whether their Host header is checked: two that differ would let a web page reach an open node under
 * a name of its own (DNS rebinding). A name other than localhost may resolve to any address, so it is not loopback.
 */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  const url = `http://${bare.includes(":") ? `[${bare}]` : bare}`;
  if (!/^[\w.:-]+$/.test(bare) || !URL.canParse(url)) return false;
  // Normalizes case, short forms, and IPv4 addresses inside IPv6 ones (to hexadecimal).
  const { hostname } = new URL(url);
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/.test(hostname);
}
