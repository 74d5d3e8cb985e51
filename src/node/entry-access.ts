/**
 * Access to this node: how callers are authenticated, where credentials are stored, and how nodes with their own stores
 * share them.
 */

import { join } from "node:path";
import { Access } from "../access/access.ts";
import { CredentialReplicas } from "../access/credential-replicas.ts";
import { Credentials } from "../access/credentials.ts";
import { FirstToken } from "../access/first-token.ts";
import { asksCallers } from "../config/checks.ts";
import { ADMIN_TOKEN_FILE } from "../config/secrets/secret-file.ts";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import { PEER_ROUTES } from "../peers/rpc/peer-routes.ts";
import type { PeerHandler } from "../transport/transport.ts";
import type { Backend } from "./backend.ts";
import type { NodePlatform } from "./platform.ts";

export interface AccessEntry {
  readonly access: Access;
  readonly mounts: Readonly<Record<string, PeerHandler>>;
}

export function accessOf(p: NodePlatform, b: Backend, { scheduler }: LeaderElections): AccessEntry {
  const { settings } = p;
  const { store, peers } = b;
  const credentials = new Credentials(p, store.access, store.guarantees.shared);
  const replicas = peers && new CredentialReplicas(p, credentials, peers);
  const open = !asksCallers(settings);
  const { token } = settings.access;
  const file = store.guarantees.keepsTokenFile ? join(settings.data, ADMIN_TOKEN_FILE) : null;
  const firstToken = new FirstToken(
    p,
    credentials,
    file,
    replicas && {
      agreed: peers.firstToken,
      leads: () => scheduler.held() !== null,
      settled: () => replicas.hasHeard(scheduler.current()?.leader ?? ""),
    },
  );
  const access = new Access(p, {
    credentials,
    open,
    fixedToken: token,
    firstToken: open || token !== "" ? null : firstToken,
    beside: replicas ? [replicas] : [],
  });
  return {
    access,
    mounts: replicas ? { [PEER_ROUTES.credentials.path]: replicas.handle } : {},
  };
}
