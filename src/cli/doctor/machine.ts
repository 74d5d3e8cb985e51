/** Reads and judges the machine that runs `baton doctor`: Node.js, limits, disk, secrets in files, and the port. */

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { isEverywhere } from "../../config/values/address.ts";
import { bytes } from "../../core/format-figures.ts";
import { CliFailure } from "../failure.ts";
import { choosePort } from "../process/port.ts";
import { failed, isAtLeast, judged, type Judgement, ok, skipped, warning } from "./findings.ts";

const NODE_NEEDED = [24, 16] as const;

export function judgeRuntime(version: string): readonly Judgement[] {
  return judged(
    [
      !isAtLeast(version, NODE_NEEDED) &&
        failed(
          `Node ${version} is too old: ${NODE_NEEDED.join(".")} is needed`,
          "install a newer Node, or run npm install without --omit=optional: it brings one along",
        ),
    ],
    `Node ${version}`,
  );
}

/** A node has a file for every connection: callers, peers, the database. Below this a busy gateway runs out. */
const OPEN_FILES_WISHED = 4_096;
/** Below this a node may not even get through its start. */
const OPEN_FILES_NEEDED = 256;

export function judgeOpenFiles(limit: number | "unlimited" | null): readonly Judgement[] {
  if (limit === null) return [skipped("the limit of open files is not known on this platform")];
  const fine = `${limit === "unlimited" ? "any number of" : limit} open files allowed`;
  if (limit === "unlimited" || limit >= OPEN_FILES_WISHED) return [ok(fine)];
  const remedy = "raise it: LimitNOFILE=65536 in systemd, `ulimit -n 65536` in a shell, ulimits in Docker";
  const message = `only ${limit} open files are allowed, and every connection is one`;
  return [limit < OPEN_FILES_NEEDED ? failed(message, remedy) : warning(message, remedy)];
}

export type DirectoryFacts = Awaited<ReturnType<typeof directoryFacts>>;

const FREE_NEEDED = 256 * 2 ** 20;
const FREE_WISHED = 2 * 2 ** 30;
const SHARE_WISHED = 0.05;

export function judgeDirectory(facts: DirectoryFacts): readonly Judgement[] {
  const { path, exists, writable, mode, freeBytes: free, totalBytes: total, network } = facts;
  return judged(
    [
      !writable &&
        failed(
          `${path} ${exists ? "cannot be written" : "is not there and cannot be made"} by this user`,
          `give it to the user of the node (chown), or name another with --data`,
        ),
      exists &&
        mode !== null &&
        (mode & 0o077) !== 0 &&
        warning(
          `other users can look into ${path}, where payloads and results are`,
          `type: chmod 700 ${path}`,
        ),
      network !== null &&
        warning(
          `${path} is on a network file system (${network}), where locks and fsync do not keep what they promise`,
          "put it on a local disk, or use PostgreSQL (--store)",
        ),
      free !== null &&
        total !== null &&
        (free < FREE_NEEDED || (free < FREE_WISHED && free < total * 0.5) || free < total * SHARE_WISHED) &&
        (free < FREE_NEEDED ? failed : warning)(
          `${bytes(free)} of ${bytes(total)} are free where ${path} is`,
          "make room: a full disk refuses every submit; retention.* says how long finished jobs are kept",
        ),
    ],
    `${path} ${exists ? "is there" : "can be made"}${free === null ? "" : `, ${bytes(free)} free`}`,
  );
}

export function openFilesLimit(): number | "unlimited" | null {
  // A report is the only way to ask without starting a program; without the network it takes some milliseconds.
  (process.report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = userLimits?.open_files?.soft;
  if (soft === "unlimited") return soft;
  return soft === undefined || Number.isNaN(Number(soft)) ? null : Number(soft);
}

const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x5346414f, "AFS"],
  [0x00c36400, "Ceph"],
  [0x65735546, "FUSE"],
]);

export async function directoryFacts(path: string) {
  const exists = existsSync(path);
  const near = nearestExisting(path);
  const space = await statfs(near).catch(() => null);
  return {
    path,
    exists,
    writable: isWritable(near),
    mode: exists ? modeOf(path) : null,
    freeBytes: space && space.bavail * space.bsize,
    totalBytes: space && space.blocks * space.bsize,
    network: (space && process.platform === "linux" && NETWORK.get(space.type >>> 0)) || null,
  };
}

export function modeOf(path: string): number | null {
  if (process.platform === "win32") return null;
  return statSync(path, { throwIfNoEntry: false })?.mode ?? null;
}

function nearestExisting(path: string): string {
  let near = path;
  while (!existsSync(near) && dirname(near) !== near) near = dirname(near);
  return near;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export interface SecretFile {
  readonly path: string;
  readonly holds: string;
  readonly mode: number | null;
}

export function judgeSecretFiles(files: readonly SecretFile[]): readonly Judgement[] {
  const paths = files.map(({ path }) => path).join(", ");
  return judged(
    files.map(({ path, holds, mode }) => {
      if (mode === null || (mode & 0o044) === 0) return false;
      const [who, say] =
        (mode & 0o004) !== 0
          ? (["every user of this machine", failed] as const)
          : (["users of its group", warning] as const);
      return say(`${path} has ${holds} and can be read by ${who}`, `type: chmod 600 ${path}`);
    }),
    files.length === 0 ? "no secret lies in a file" : `only their owner can read ${paths}`,
  );
}

/** Of what the configuration says; whether it is so, see nodes.ts. */
export function judgeExposure({ host, asks }: { host: string; asks: boolean }): readonly Judgement[] {
  const callers = asks
    ? "callers must show a token"
    : "only this machine reaches it, and nobody on it is asked for a token";
  return [ok(`listens on ${isEverywhere(host) ? "all addresses" : host}: ${callers}`)];
}

export interface PortQuestion {
  readonly host: string;
  readonly port: number;
  readonly name: string;
  readonly ownUrl: string | null;
}

export async function judgePort({ host, port, name, ownUrl }: PortQuestion): Promise<readonly Judgement[]> {
  if (port === 0) return [ok("any free port will do (http.port is 0)")];
  if (ownUrl !== null) return [ok(`${name} listens at ${ownUrl}`)];
  try {
    await choosePort(host, port, true);
    return [ok(`port ${port} on ${host} is free`)];
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return [failed(error.message, error.hint ?? "choose another with --port")];
  }
}
