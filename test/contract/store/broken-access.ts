import type { AccessStore } from "../../../src/store/access.ts";
import type { BrokenStores, Replace } from "./broken-row.ts";

function inAccess(of: (access: AccessStore) => Partial<AccessStore>): Replace {
  return ({ access }) => ({ access: of(access) });
}

export const BROKEN_ACCESS: BrokenStores = {
  "lets a later change undo a revocation": [
    "what was removed stays removed, whatever comes later",
    inAccess((access) => ({
      put: async (credentials, only) => {
        const there = (await access.changes(0)).credentials;
        const revived = credentials.filter((each) => {
          const known = there.find(({ id }) => id === each.id);
          return known?.removedAt && each.version > known.version;
        });
        await access.forget(revived.map(({ id }) => id));
        return access.put(credentials, only);
      },
    })),
  ],
  "gives the first place to everybody who asks at the same time": [
    "a first admin is taken only where there never was one, also of many at the same time",
    inAccess((access) => ({
      put: async (credentials, only) => {
        if (only !== "first_admin") return access.put(credentials, only);
        const { credentials: there } = await access.changes(0);
        return there.some(({ permission }) => permission === "admin") ? null : access.put(credentials);
      },
    })),
  ],
  "tells only the newest change": [
    "only what was written behind a revision is told",
    inAccess((access) => ({
      changes: async (after) => {
        const { revision, credentials } = await access.changes(after);
        return { revision, credentials: credentials.slice(-1) };
      },
    })),
  ],
};
