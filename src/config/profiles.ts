/** Sets of defaults. A profile changes nothing that somebody has set. */

export const PROFILE_NAMES = ["lan", "forge"] as const;
export type ProfileName = (typeof PROFILE_NAMES)[number];

/** By the setting's path, written as in a file. */
export const PROFILES: Readonly<Record<ProfileName, Readonly<Record<string, string>>>> = {
  lan: {},
  // For many nodes on a small database: an idle node writes a fifth as often, a silent death is noticed later.
  forge: {
    "leader.lease": "60s",
    "leader.renew": "30s",
    // A quarter of the lease, as core/trust.ts asks for.
    "leader.margin": "15s",
    "leader.retry": "5s",
    "node.heartbeat": "5s",
    "node.dead_after": "15s",
    "drain.timeout": "30s",
  },
};
