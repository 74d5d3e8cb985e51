/** Profiles: named sets of defaults. A profile never overrides a value that was set explicitly. */

type Defaults = Readonly<Record<string, string>>;

export const PROFILE_NAMES = ["lan", "wan", "local", "quiet-peers", "slow-peers", "push"] as const;
export type ProfileName = (typeof PROFILE_NAMES)[number];

export const PROFILES: Readonly<Record<ProfileName, Defaults>> = {
  lan: {},
  // For nodes far from their database, or many on a small one: an idle node writes a fifth as often, a silent death is noticed later.
  wan: {
    "leader.lease": "60s",
    "leader.renew": "30s",
    // A quarter of the lease, as core/leadership/trust-window.ts asks for.
    "leader.margin": "15s",
    "leader.retry": "5s",
    "node.heartbeat": "5s",
    "node.dead_after": "15s",
    "drain.timeout": "30s",
  },
  // For nodes that are all on one machine, where a call does not get lost and nobody wants to wait for a drain.
  local: {
    "leader.lease": "2s",
    "leader.renew": "400ms",
    "leader.margin": "500ms",
    "leader.retry": "200ms",
    "node.heartbeat": "500ms",
    // Longer than a busy machine keeps a process from running.
    "node.dead_after": "2s",
    "peers.health_interval": "500ms",
    "peers.election_timeout": "250ms",
    "drain.timeout": "5s",
    "drain.cleanup": "1s",
  },
  // For peers that should say little: they look at each other every 5s.
  "quiet-peers": {
    "peers.health_interval": "5s",
    "peers.request_timeout": "5s",
    "peers.heartbeat_timeout": "5s",
    "node.dead_after": "10s",
    "drain.timeout": "10s",
    "drain.cleanup": "2s",
  },
  // For peers that answer slowly. The lease leaves room for two rounds of votes that take 3s each.
  "slow-peers": {
    "peers.health_interval": "2s",
    "peers.heartbeat_timeout": "2s",
    "peers.election_timeout": "3s",
    "node.dead_after": "4s",
    "leader.lease": "20s",
    "leader.renew": "2s",
    "leader.margin": "5s",
    "leader.retry": "2s",
  },
  // For a cluster whose leader pushes jobs to the workers. A third of the lease between renewals, a quarter of it as a margin.
  push: {
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

/** Other names of profiles: of the systems that their numbers come from (docs/compatibility.md). They stay accepted. */
export const PROFILE_ALIASES = ["forge", "langid", "ghoti", "orchestrix"] as const;
export type ProfileAlias = (typeof PROFILE_ALIASES)[number];

interface Alias {
  readonly profile: ProfileName;
  /** What the alias sets beyond its profile. */
  readonly more?: Defaults;
}

const ALIASES: Readonly<Record<ProfileAlias, Alias>> = {
  forge: { profile: "wan" },
  langid: { profile: "quiet-peers" },
  ghoti: { profile: "slow-peers" },
  // Nodes that are started with the alias and a new version must meet those of the version before in one Redis.
  orchestrix: { profile: "push", more: { "redis.prefix": "orchestrix" } },
};

/** What somebody may write. */
export type GivenProfile = ProfileName | ProfileAlias;

export function mainProfile(given: GivenProfile): ProfileName {
  return isAlias(given) ? ALIASES[given].profile : given;
}

export function profileDefaults(given: GivenProfile): Defaults {
  return isAlias(given) ? { ...PROFILES[ALIASES[given].profile], ...ALIASES[given].more } : PROFILES[given];
}

function isAlias(given: GivenProfile): given is ProfileAlias {
  return Object.hasOwn(ALIASES, given);
}
