import { RedisLocks } from "../../src/leadership/redis/locks.ts";
import { AdmittedElection } from "./lock-admitted-election.ts";
import { openClusterLock, PrefixedCluster, type GivenOptions } from "./lock-cluster.ts";
import type { LockWorld } from "./lock-world.ts";
import type { SharedPostgres } from "./postgres-server.ts";
import type { RedisServer } from "./redis-server.ts";

export class RedisCluster extends PrefixedCluster<RedisServer, RedisLocks> {
  key(...parts: readonly string[]): string {
    return `{${this.prefix}}:coordinator:${parts.join(":")}`;
  }

  protected open(given: GivenOptions): RedisLocks {
    const { prefix, terms } = this;
    return new RedisLocks({ url: this.server.url(), prefix, terms, ...given });
  }
}

export function openRedisLock(server: RedisServer, rounds: number): Promise<LockWorld> {
  return openClusterLock(new RedisCluster(server), { rounds });
}

export type RedisElection = AdmittedElection<RedisCluster>;

export function openRedisElection(redis: RedisServer, postgres: SharedPostgres): Promise<RedisElection> {
  return AdmittedElection.open(postgres, (terms) => new RedisCluster(redis, terms));
}
