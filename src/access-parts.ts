/** Who may come in, put together: what is asked of callers, where their credentials lie, and how the nodes share them. */

import { join } from "node:path";
import { Access } from "./access/access.ts";
import { ACCESS_PATH, CredentialReplicas } from "./access/credential-replicas.ts";
import { Credentials } from "./access/credentials.ts";
import { FirstToken } from "./access/first-token.ts";
import { asksCallers } from "./config/access-checks.ts";
import { ADMIN_TOKEN_FILE } from "./config/secret-file.ts";
import type { Settings } from "./config/settings.ts";
import type { Leadership } from "./coordination/coordination.ts";
import type { NodeIdentity } from "./core/node.ts";
import type { PeerFabric } from "./peer-fabric.ts";
import type { Clock } from "./platform/clock.ts";
import type { Log } from "./platform/log.ts";
import type { Random } from "./platform/random.ts";
import type { Store } from "./store/store.ts";
import type { PeerHandler } from "./transport/transport.ts";

export interface AccessPartsOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly store: Store;
  readonly peers: PeerFabric | null;
  readonly leadership: Pick<Leadership, "current" | "held">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** What the listener needs to know. */
export interface AccessParts {
  readonly access: Access;
  readonly rateLimit: number;
  readonly trustedProxies: readonly string[];
  /** Whether callers reach this node by https alone. */
  readonly secure: boolean;
  readonly mounts: Readonly<Record<string, PeerHandler>>;
}

export function accessParts(options: AccessPartsOptions): AccessParts {
  const { settings, identity, store, peers, leadership, clock, random, log } = options;
  const common = { node: identity.name, clock, random, log };
  const replicas = peers
    ? new CredentialReplicas({
        self: identity.name,
        credentials: () => credentials,
        nodes: peers.nodes,
        call: peers.call,
        clock,
        log,
      })
    : null;
  const credentials = new Credentials({
    store: store.access,
    shared: store.guarantees.shared,
    clock,
    log,
    ...(replicas && { tell: (changed) => replicas.tell(changed) }),
  });
  const open = !asksCallers(settings);
  const { token } = settings.access;
  const access = new Access({
    credentials,
    open,
    fixedToken: token,
    firstToken:
      open || token !== ""
        ? null
        : new FirstToken({
            credentials,
            file: store.guarantees.keepsTokenFile ? join(settings.data, ADMIN_TOKEN_FILE) : null,
            peers:
              peers && replicas
                ? {
                    agreed: peers.firstToken,
                    leads: () => leadership.held() !== null,
                    settled: () => replicas.hasHeard(leadership.current()?.leader ?? ""),
                  }
                : null,
            ...common,
          }),
    beside: replicas ? [replicas] : [],
    ...common,
  });
  const { rateLimit, trustedProxies, url } = settings.http;
  return {
    access,
    rateLimit,
    trustedProxies,
    secure: url.startsWith("https:"),
    mounts: {
      ...peers?.listener.mounts,
      ...(replicas && { [ACCESS_PATH]: (request) => replicas.handle(request) }),
    },
  };
}
