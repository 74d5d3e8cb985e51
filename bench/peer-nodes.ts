/** A cluster of peers, each node a process of its own with a store on disk, as servers under load. */

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "../test/support/free-port.ts";
import { Actor } from "./actor.ts";
import type { BatonOptions } from "./baton.ts";
import type { Engine } from "./engine.ts";
import type { HttpSide } from "./http-side.ts";

/** Three times what nodes that start at once need on a busy machine. */
const GATHER_MS_MAX = 30_000;

export class PeerNodes {
  readonly urls: readonly string[];
  readonly nodes: readonly Actor<HttpSide>[];

  private constructor(urls: readonly string[], nodes: readonly Actor<HttpSide>[]) {
    this.urls = urls;
    this.nodes = nodes;
  }

  /** By name, with what each is beside the defaults. Resolves when they have a leader and all of them know each other. */
  static async open(
    engine: Engine,
    nodes: Readonly<Record<string, Partial<BatonOptions>>>,
  ): Promise<PeerNodes> {
    const names = Object.keys(nodes);
    const ports = await freePorts(names.length);
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const shared = {
      nodes: names.map((name, index) => `${name}=${urls[index]}`).join(","),
      "cluster.secret": randomBytes(32).toString("base64url"),
    };
    const opening = names.map(async (name, index) => {
      const { settings, ...rest } = nodes[name]!;
      return Actor.open<HttpSide>("./baton-server.ts", {
        dir: (await engine.place(name)).dir,
        name,
        run: false,
        ...rest,
        settings: { ...shared, "http.port": String(ports[index]), ...settings },
      });
    });
    const cluster = new PeerNodes(urls, await Promise.all(opening));
    try {
      await Promise.all(cluster.nodes.map((node) => node.call("reset")));
      await Promise.all(urls.map((url) => gathered(url, names.length)));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}

async function gathered(url: string, count: number): Promise<void> {
  for (const until = performance.now() + GATHER_MS_MAX; ; await sleep(50)) {
    const { nodes } = (await (await fetch(`${url}/cluster/nodes`)).json()) as {
      nodes: readonly { status: string }[];
    };
    if (nodes.filter(({ status }) => status === "active").length === count) return;
    if (performance.now() > until) throw new Error(`${count} nodes did not gather: ${JSON.stringify(nodes)}`);
  }
}
