/**
 * Access to this node: how callers are authenticated, where credentials are stored, and how nodes with their own stores
 * share them.
 */

import { join } from "node:path";
import { Access } from "../access/access.ts";
import { ACCESS_PATH, CredentialReplicas } from "../access/credential-replicas.ts";
import { Credentials } from "../access/credentials.ts";
import { FirstToken } from "../access/first-token.ts";
import { asksCallers } from "../config/checks/access-checks.ts";
import { ADMIN_TOKEN_FILE } from "../config/secrets/secret-file.ts";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import type { PeerHandler } from "../transport/transport.ts";
import type { Backend } from "./backend.ts";
import type { NodePlatform } from "./platform.ts";

export interface AccessEntry {
  readonly access: Access;
  readonly mounts: Readonly<Record<string, PeerHandler>>;
}

export function accessOf(p: NodePlatform, b: Backend, { scheduler }: LeaderElections): AccessEntry {
  const { settings, identity, clock, random, log } = p;
  const { store, peers } = b;
  const { name: node } = identity;
  const common = { node, clock, random, log };
  const credentials = new Credentials({
    store: store.access,
    shared: store.guarantees.shared,
    clock,
    log,
  });
  const replicas = peers && new CredentialReplicas({ self: node, credentials, ...peers, clock, log });
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
            peers: replicas && {
              agreed: peers.firstToken,
              leads: () => scheduler.held() !== null,
              settled: () => replicas.hasHeard(scheduler.current()?.leader ?? ""),
            },
            ...common,
          }),
    beside: replicas ? [replicas] : [],
    ...common,
  });
  return {
    access,
    mounts: replicas ? { [ACCESS_PATH]: (request) => replicas.handle(request) } : {},
  };
}
