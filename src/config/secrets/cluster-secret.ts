/**
 * The secret with which peers sign their calls: the setting `cluster.secret`; or a key derived from the join server's
 * user and password, which is weaker, because the password is sent in clear with every join and people choose it; or a
 * secret stored on the machine, among nodes that no other machine can reach. The rules for its strength reject secrets
 * that were typed instead of generated: 32 characters of base64url have 192 bits, of hexadecimal 128.
 */

import { scryptSync } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../../core/errors.ts";
import { isLoopback } from "../../core/access/permissions.ts";
import { newSecret } from "../../platform/random.ts";
import { parseAddress } from "../values/address.ts";
import type { Environment } from "../sources/environment.ts";
import { fabricOf } from "../fabric.ts";
import { createOwnSecret, readOwnSecret, UntrustedFile } from "./secret-file.ts";
import type { Settings } from "../settings.ts";
import { adviceText, type Advice } from "../mistake.ts";

export interface ClusterSecret {
  /** The first signs, all are believed. One, or two while it is changed. */
  readonly secrets: readonly string[];
  readonly from: "settings" | "manager" | "machine" | "nothing";
  /** What must be said loudly: in the log, in `status` and in the banner. Empty when all is well. */
  readonly warnings: readonly string[];
}

export type SecretSettings = Pick<Settings, "store" | "nodes" | "join" | "discover" | "manager"> & {
  readonly http: Pick<Settings["http"], "host">;
  readonly cluster: Pick<Settings["cluster"], "secret" | "insecure">;
};

const LENGTH_MIN = 32;
const DIFFERENT_MIN = 8;
const SECRETS_MAX = 2;
/** Smaller, and a stolen call tells a password by trying; larger, and every start waits. About 0.1 s and 32 MiB. */
const SCRYPT = { N: 2 ** 15, r: 8, p: 1, maxmem: 2 ** 26 };
/** Signs for those who said that they want no secret. Everybody knows it. */
const NO_SECRET = "baton-insecure-signs-for-everybody";

/** Compared in small letters and without what is neither letter nor digit. */
const WELL_KNOWN: ReadonlySet<string> = new Set(
  (
    "changeme changeit changethis secret mysecret topsecret supersecret secretkey password passw0rd " +
    "password1 password123 pass passwd default defaulttoken clusterpass clusteruser clustersecret " +
    "clusterpassword baton batonsecret token admin root guest test demo example letmein qwerty 12345678 " +
    "1234567890 yoursecrethere chooseyourown replaceme fixme todo insecure none null undefined"
  ).split(" "),
);

export function weakness(secret: string): string | null {
  if (isWellKnown(secret)) return "is known to everybody";
  if (secret.length < LENGTH_MIN)
    return `is too short: ${secret.length} characters, and ${LENGTH_MIN} are needed`;
  if (new Set(secret).size < DIFFERENT_MIN) return "has too few different characters";
  if ((secret + secret).indexOf(secret, 1) < secret.length) return "is a repetition";
  return null;
}

/** Throws BAD_CONFIG for what forbids the start, each in one sentence with the line to type. */
export function checkSecret(settings: SecretSettings): void {
  const mistakes = secretAdvice(settings).map(adviceText);
  if (mistakes.length > 0) throw new BatonError("BAD_CONFIG", mistakes.join("\n"), { mistakes });
}

export function secretAdvice(settings: SecretSettings): Advice[] {
  if (fabricOf(settings) !== "peers") return [];
  const count = secretsIn(settings).length;
  if (count > SECRETS_MAX) {
    const message = `cluster.secret has ${count} secrets; it may have two, the new one first`;
    return [{ message, remedy: null }];
  }
  return settings.cluster.insecure
    ? []
    : weaknesses(settings).map((message) => ({ message, remedy: REMEDY }));
}

/** Throws BAD_CONFIG as `checkSecret` does, or without access to the machine's own secret. Null where none is needed. */
export function openClusterSecret(
  settings: SecretSettings,
  environment: Environment = process.env,
): ClusterSecret | null {
  if (fabricOf(settings) !== "peers") return null;
  checkSecret(settings);
  const warnings = insecurities(settings);
  const secrets = secretsIn(settings);
  if (secrets.length > 0) return { secrets, from: "settings", warnings };
  const { user, pass } = settings.manager;
  if (pass !== "") return { secrets: [derived(user, pass)], from: "manager", warnings };
  if (exposures(settings).length > 0) return { secrets: [NO_SECRET], from: "nothing", warnings };
  return { secrets: [machineSecret(environment)], from: "machine", warnings };
}

/** What `--insecure` lets pass. */
export function insecurities(settings: SecretSettings): string[] {
  if (fabricOf(settings) !== "peers" || !settings.cluster.insecure) return [];
  return weaknesses(settings).map((why) => `INSECURE: ${why}: whoever reaches it can act as a node`);
}

const REMEDY =
  "type `baton secret create --file baton.secret`, copy that file to every node and set BATON_SECRET_FILE to its path (or start with --insecure, where everybody who reaches the port is trusted)";

function weaknesses(settings: SecretSettings): string[] {
  const open = exposures(settings);
  if (open.length === 0) return [];
  const where = `and ${open.join(" and ")} can be reached from elsewhere`;
  const secrets = secretsIn(settings);
  const { user, pass, addr } = settings.manager;
  if (secrets.length > 0) {
    const bad = secrets.map(weakness).filter((why) => why !== null);
    if (bad.length > 0) return [`cluster.secret ${bad[0]}, ${where}`];
    const listens = addr !== "" && !isLoopback(parseAddress(addr)?.host ?? "");
    return listens && isWellKnown(pass)
      ? [`manager.pass is known to everybody, and manager.addr ${addr} can be reached from elsewhere`]
      : [];
  }
  if (user === "" || pass === "") return [`cluster.secret is missing, ${where}`];
  const why = weakness(pass);
  return why === null ? [] : [`there is no cluster.secret, manager.pass ${why}, ${where}`];
}

function exposures({ http, manager }: SecretSettings): string[] {
  const host = manager.addr === "" ? null : (parseAddress(manager.addr)?.host ?? "");
  return [
    ...(isLoopback(http.host) ? [] : [`http.host ${http.host}`]),
    ...(host === null || isLoopback(host) ? [] : [`manager.addr ${manager.addr}`]),
  ];
}

function secretsIn({ cluster }: SecretSettings): string[] {
  const parts = cluster.secret.split(/[,\r\n]+/).map((part) => part.trim());
  return [...new Set(parts.filter((part) => part !== ""))];
}

export function isWellKnown(secret: string): boolean {
  return WELL_KNOWN.has(secret.toLowerCase().replaceAll(/[^a-z0-9]/g, ""));
}

/** The user is part of the salt, so that one password in two clusters makes two keys; the label keeps other uses apart. */
function derived(user: string, pass: string): string {
  return scryptSync(pass, `baton/cluster-secret/1:${user}`, 32, SCRYPT).toString("base64url");
}

export function machineSecretFile(environment: Environment): string {
  const home = environment["HOME"] || homedir();
  const state =
    process.platform === "win32"
      ? environment["LOCALAPPDATA"] || join(home, "AppData", "Local")
      : environment["XDG_STATE_HOME"] || join(home, ".local", "state");
  return join(state, "baton", "secret");
}

/** Keeps out other users of the machine; the loopback address keeps out other machines. Throws BAD_CONFIG with the remedy. */
function machineSecret(environment: Environment): string {
  const file = machineSecretFile(environment);
  try {
    return readOwnSecret(file) ?? createOwnSecret(file, newSecret());
  } catch (error) {
    if (error instanceof UntrustedFile) throw bad(file, error.message);
    throw bad(file, `cannot be read or kept (${String((error as NodeJS.ErrnoException).code)})`);
  }
}

function bad(file: string, why: string): BatonError {
  const message = `the secret of this machine's nodes, ${file}, ${why}; remove it, or set BATON_SECRET (\`baton secret create\`)`;
  return new BatonError("BAD_CONFIG", message);
}
