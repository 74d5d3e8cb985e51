/** Nodes without their listeners: only what they know of credentials, on a clock that moves when told. */

import { Access } from "../../../src/access/access.ts";
import { credentialReplicas, type CredentialReplicas } from "../../../src/access/credential-replicas.ts";
import { Credentials } from "../../../src/access/credentials.ts";
import type { Credential } from "../../../src/core/access/credential.ts";
import type { Principal } from "../../../src/core/access/permissions.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeInfo } from "../../../src/core/node.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { fakePlatform, type FakePlatform } from "../../support/fake-platform.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { PeerClient } from "../../../src/peers/rpc/peer-rpc.ts";
import type { AccessStore } from "../../../src/store/access.ts";
import { memoryStore } from "../../support/memory-store.ts";
import type { Outcome, PeerRequest, ReceivedRequest } from "../../../src/transport/transport.ts";

export function credential(fields: Partial<Credential> = {}): Credential {
  return {
    id: "id",
    kind: "token",
    name: "ci",
    permission: "submit",
    secret: "hash",
    owner: null,
    createdAt: 0,
    createdBy: "user:ann",
    expiresAt: null,
    lastUsedAt: null,
    removedAt: null,
    version: 1,
    node: "a",
    ...fields,
  };
}

export interface AccessNode {
  readonly name: string;
  readonly access: Access;
  readonly credentials: Credentials;
  readonly replicas: CredentialReplicas | null;
  who(token: string): Principal | null;
}

export async function storeOn(clock: ManualClock): Promise<AccessStore> {
  const store = memoryStore({ clock });
  return store.access;
}

/** A platform on the clock of the test, whose ids are as random as real ones. */
export function platformOf(name: string, clock: ManualClock, log = silentLog): FakePlatform {
  return fakePlatform({ name, clock, random: systemRandom, log });
}

async function nodeOf(
  platform: FakePlatform,
  credentials: Credentials,
  replicas: CredentialReplicas | null,
): Promise<AccessNode> {
  const access = new Access(platform, { credentials, open: false, fixedToken: "", firstToken: null });
  await credentials.start();
  const who = (text: string): Principal | null => access.identify({ by: "bearer", text });
  return { name: platform.identity.name, access, credentials, replicas, who };
}

export function sharing(name: string, clock: ManualClock, store: AccessStore): Promise<AccessNode> {
  const platform = platformOf(name, clock);
  return nodeOf(platform, new Credentials(platform, store, true), null);
}

/** Nodes that have a store each, and lines between them that can be cut. */
export class PeerAccess {
  readonly clock = new ManualClock();
  readonly nodes: AccessNode[] = [];
  readonly stores = new Map<string, AccessStore>();
  readonly #cut = new Set<string>();
  /** Calls that reached their node. */
  calls = 0;

  static async of(...names: readonly string[]): Promise<PeerAccess> {
    const world = new PeerAccess();
    for (const name of names) await world.add(name);
    return world;
  }

  async add(name: string): Promise<AccessNode> {
    const { clock } = this;
    const store = this.stores.get(name) ?? (await storeOn(clock));
    this.stores.set(name, store);
    const platform = platformOf(name, clock);
    const credentials = new Credentials(platform, store, false);
    const replicas: CredentialReplicas = credentialReplicas(platform, credentials, {
      nodes: () =>
        this.nodes.map((each) => ({ name: each.name, url: `http://${each.name}`, alive: true }) as NodeInfo),
      client: new PeerClient((_url, request, { to }) => this.#call(name, to!, request)),
    });
    const node = await nodeOf(platform, credentials, replicas);
    this.nodes.push(node);
    return node;
  }

  cut(a: string, b: string): void {
    this.#cut.add(`${a} ${b}`).add(`${b} ${a}`);
  }

  heal(): void {
    this.#cut.clear();
  }

  async startAll(): Promise<void> {
    for (const { replicas } of this.nodes) await replicas!.start();
  }

  async stopAll(): Promise<void> {
    for (const { replicas, credentials } of this.nodes) {
      const stopping = Promise.all([replicas!.stop(), credentials.stop()]);
      await this.clock.advance(1);
      await stopping;
    }
  }

  async #call(from: string, to: NodeName, request: PeerRequest): Promise<Outcome> {
    const node = this.nodes.find(({ name }) => name === to);
    if (!node || this.#cut.has(`${from} ${to}`)) return { outcome: "refused", reason: "cut off" };
    this.calls++;
    const { method, path, body = "" } = request;
    const received: ReceivedRequest = { from, method, path, body, headers: {} };
    const reply = await node.replicas!.handle(received);
    return { outcome: "reply", status: reply.status, headers: {}, body: reply.body ?? "" };
  }
}
