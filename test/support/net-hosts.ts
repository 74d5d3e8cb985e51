/**
 * Hosts of their own for nodes: network namespaces on one bridge, whose packets can be lost. The
 * test itself sits at the bridge and reaches all of them, as clients do. Linux and root only, see `whyNoHosts`.
 *
 *     test ---- bridge ---+--- a
 *                         +--- b        lose(a, b): what a sends to b vanishes on the way, without a word
 *                         '--- c
 */

import { execFileSync } from "node:child_process";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { BIN } from "./process.ts";

/** A hardware address that nobody has: frames to it go to every port of the bridge, and no host takes them. */
const NOBODY = "02:ba:70:00:00:00";
const TEST_HOST = 254;

let networks = 0;
let reason: string | null | undefined;

/** False when hosts can be made here; otherwise why not, for `skip`. */
export function whyNoHosts(): string | false {
  if (reason === undefined) reason = findReason();
  return reason ?? false;
}

function findReason(): string | null {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return "network namespaces need root on Linux";
  const name = `baton-${process.pid}-try`;
  try {
    ip("netns", "add", name);
    ip("netns", "delete", name);
    return null;
  } catch (error) {
    return `network namespaces cannot be made here: ${(error as Error).message.split("\n").at(-2) ?? ""}`;
  }
}

interface Host {
  readonly namespace: string;
  /** The end of its cable at the bridge. */
  readonly port: string;
  readonly address: string;
}

export class NetHosts {
  readonly #hosts = new Map<string, Host>();
  readonly #bridge: string;
  readonly #subnet: string;

  private constructor() {
    const id = `${process.pid.toString(36)}${(networks++).toString(36)}`;
    this.#bridge = `bt${id}`;
    // Of the addresses for private use; another network of this test, or another test, has another one.
    this.#subnet = `10.${64 + ((process.pid >> 8) & 63)}.${(process.pid + 97 * networks) & 255}`;
  }

  static open(t: Scope, names: readonly string[]): NetHosts {
    const net = new NetHosts();
    atEnd(t, () => net.#remove());
    net.#build(names);
    return net;
  }

  address(name: string): string {
    return this.#host(name).address;
  }

  /** Runs a node on that host; the process is the node itself, so that signals reach it. */
  command(name: string): (args: readonly string[]) => readonly [string, readonly string[]] {
    const { namespace } = this.#host(name);
    return (args) => ["ip", ["netns", "exec", namespace, process.execPath, BIN, ...args]];
  }

  /** What one sends to the other vanishes; the way back stays as it is. */
  lose(from: string, to: string): void {
    const { namespace } = this.#host(from);
    ip(
      "-n",
      namespace,
      "neigh",
      "replace",
      this.address(to),
      "lladdr",
      NOBODY,
      "dev",
      "eth0",
      "nud",
      "permanent",
    );
  }

  /** Nothing passes between the groups, and everything within them. Clients still reach everybody. */
  split(...groups: readonly (readonly string[])[]): void {
    for (const group of groups) {
      const outside = groups.filter((other) => other !== group).flat();
      for (const from of group) for (const to of outside) this.lose(from, to);
    }
  }

  heal(): void {
    for (const { namespace } of this.#hosts.values()) {
      ip("-n", namespace, "neigh", "flush", "dev", "eth0", "nud", "permanent");
    }
  }

  #host(name: string): Host {
    const host = this.#hosts.get(name);
    if (!host) throw new Error(`there is no host ${name}`);
    return host;
  }

  #build(names: readonly string[]): void {
    ip("link", "add", this.#bridge, "type", "bridge", "forward_delay", "0");
    ip("address", "add", `${this.#subnet}.${TEST_HOST}/24`, "dev", this.#bridge);
    ip("link", "set", this.#bridge, "up");
    for (const [index, name] of names.entries()) {
      const host = {
        namespace: `${this.#bridge}-${name}`,
        port: `${this.#bridge}p${index}`,
        address: `${this.#subnet}.${index + 1}`,
      };
      ip("netns", "add", host.namespace);
      this.#hosts.set(name, host);
      ip("link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace);
      ip("link", "set", host.port, "master", this.#bridge, "up");
      ip("-n", host.namespace, "address", "add", `${host.address}/24`, "dev", "eth0");
      ip("-n", host.namespace, "link", "set", "eth0", "up");
      ip("-n", host.namespace, "link", "set", "lo", "up");
    }
  }

  /** As much of it as was made. */
  #remove(): void {
    for (const { namespace, port } of this.#hosts.values()) {
      // By itself it would go only some time after its host.
      ip("link", "delete", port);
      ip("netns", "delete", namespace);
    }
    ip("link", "delete", this.#bridge);
  }
}

function ip(...args: readonly string[]): void {
  execFileSync("ip", args, { stdio: ["ignore", "ignore", "pipe"] });
}
