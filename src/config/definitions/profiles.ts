/** Profiles: named sets of defaults. A profile never overrides a value that was set explicitly. */

export const PROFILE_NAMES = ["lan", "forge", "langid", "ghoti", "orchestrix"] as const;
export type ProfileName = (typeof PROFILE_NAMES)[number];

export const PROFILES: Readonly<Record<ProfileName, Readonly<Record<string, string>>>> = {
  lan: {},
  // For many nodes on a small database: an idle node writes a fifth as often, a silent death is noticed later.
  forge: {
    "leader.lease": "60s",
    "leader.renew": "30s",
    // A quarter of the lease, as core/leadership/trust-window.ts asks for.
    "leader.margin": "15s",
    "leader.retry": "5s",
    "node.heartbeat": "5s",
    "node.dead_after": "15s",
    "drain.timeout": "30s",
  },
  // A cluster of peers that looks at itself every 5s. What the origin calls unhealthy is one check that failed.
  langid: {
    "peers.health_interval": "5s",
    "peers.request_timeout": "5s",
    "peers.heartbeat_timeout": "5s",
    "node.dead_after": "10s",
    "drain.timeout": "10s",
    "drain.cleanup": "2s",
  },
  // The fixed times of the origin. It has no lease; this one leaves room for two rounds of votes that take 3s each.
  ghoti: {
    "peers.health_interval": "2s",
    "peers.heartbeat_timeout": "2s",
    "peers.election_timeout": "3s",
    "node.dead_after": "4s",
    "leader.lease": "20s",
    "leader.renew": "2s",
    "leader.margin": "5s",
    "leader.retry": "2s",
  },
  // The dispatch and the times of the origin, for a cluster on Redis. A third of the lease between renewals, a quarter of it as a margin.
  orchestrix: {
    "redis.prefix": "orchestrix",
    "dispatch.mode": "push",
    "leader.lease": "30s",
    "leader.renew": "10s",
    "leader.margin": "7500ms",
    "leader.retry": "5s",
    "node.heartbeat": "10s",
    "node.dead_after": "30s",
    "handoff.ack_timeout": "5s",
    "handoff.orphan_wait": "30s",
    "handoff.hard_timeout": "60s",
    "handoff.orphan_check": "30s",
    "drain.timeout": "60s",
  },
};
