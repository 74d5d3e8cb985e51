/**
 * The conformance tests of the node-controller's specification, clauses 9.1 to 9.5: written once, for every backend. Real controllers in
 * processes of their own, real signals, and nothing but HTTP between them and us. docs/conformance.md says how far each clause goes where.
 */

import { before, describe, type TestContext } from "node:test";
import {
  ConformanceCluster,
  type Backend,
  type OpenOptions,
  type Pace,
} from "../support/conformance-cluster.ts";
import { atEnd, suiteScope } from "../support/node-cleanup.ts";
import { PostgresServer, type SharedPostgres } from "../support/postgres-server.ts";
import { fencing } from "./fencing.ts";
import { leadership } from "./leadership.ts";
import { refusals } from "./refusals.ts";
import { staleRuns } from "./stale-runs.ts";

export interface SuiteOptions {
  /** Once: each way to lose a leader once, for a run with every change. Often: several times. */
  readonly faults: "once" | "often";
}

export interface Suite extends SuiteOptions {
  readonly backend: Backend;
  readonly open: (
    t: TestContext,
    pace: Pace,
    options?: Partial<Pick<OpenOptions, "agentsLease" | "wired">>,
  ) => Promise<ConformanceCluster>;
}

export function conformance(backend: Backend, options: SuiteOptions): void {
  // Most of the time is spent waiting for leases to run out, which the short run does for two tests at once.
  const concurrency = options.faults === "once" ? 2 : 1;
  describe(`conformance of controllers on ${backend}`, { concurrency }, () => {
    const scope = suiteScope();
    let server: SharedPostgres | null = null;

    before(async () => {
      if (backend === "peers") return;
      const started = await PostgresServer.shared();
      atEnd(scope, () => started.stop());
      server = started;
    });

    const suite: Suite = {
      ...options,
      backend,
      open: (t, pace, own = {}) =>
        ConformanceCluster.open(t, { backend, server, pace, agentsLease: "60s", ...own }),
    };
    refusals(suite);
    leadership(suite);
    fencing(suite);
    staleRuns(suite);
  });
}
