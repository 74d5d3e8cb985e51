/** Reads `cluster_config.json` of LangID. Unknown keys are ignored, as there. The node listens on the port of its own URL. */

import type { Entry, YamlDocument } from "../yaml-document.ts";
import type { Dialect } from "./dialects.ts";

const KEYS = [
  "self_name",
  "nodes",
  "health_check_interval_seconds",
  "internal_request_timeout_seconds",
  "enable_round_robin",
  "rr_state_file",
  "rr_strategy",
] as const;
type Key = (typeof KEYS)[number];

const STRATEGIES = ["global", "per-node"];

export const LANGID: Dialect = {
  /** `nodes` alone is ours; nothing of ours is called like the others. */
  speaks: (top) => top.some(({ key }) => key !== "nodes" && (KEYS as readonly string[]).includes(key)),

  read(document, top) {
    const of = (key: Key): Entry | undefined =>
      top.find((entry) => entry.key === key && entry.value !== null);
    const required = (key: Key, path: string): void => {
      const entry = of(key);
      if (entry) document.take(path, entry.value, entry.valueAt);
      else
        document.mistake(top[0]?.at ?? 0, `${key} is missing; a cluster_config.json has self_name and nodes`);
    };
    required("self_name", "name");
    required("nodes", "nodes");
    readTimes(document, of);
    readRotation(document, of);
    const ignored = top.filter(
      ({ key }) => !(KEYS as readonly string[]).includes(key) && !key.startsWith("_"),
    );
    if (ignored.length > 0) document.warn(`ignored: ${ignored.map(({ key }) => key).join(", ")}`);
  },
};

type Of = (key: Key) => Entry | undefined;

function readTimes(document: YamlDocument, of: Of): void {
  takeMilliseconds(document, of("internal_request_timeout_seconds"), "peers.request_timeout");
  const interval = of("health_check_interval_seconds");
  const intervalMs = takeMilliseconds(document, interval, "peers.health_interval");
  // Three checks must fail: with the default of 5s, looks that are 30s apart would make every node dead between them.
  if (intervalMs !== null)
    document.take("node.dead_after", `${Math.max(5_000, 3 * intervalMs)}ms`, interval!.valueAt);
}

/** Jobs stay where they were submitted unless the rotation is switched on: that system's default. */
function readRotation(document: YamlDocument, of: Of): void {
  const enabled = of("enable_round_robin");
  const strategy = of("rr_strategy");
  const stateFile = of("rr_state_file");
  if (enabled && typeof enabled.value !== "boolean") {
    document.mistake(enabled.valueAt, `enable_round_robin must be true or false, not ${enabled.text}`);
  }
  if (strategy && !STRATEGIES.includes(strategy.value as string)) {
    document.mistake(
      strategy.valueAt,
      `rr_strategy must be ${STRATEGIES.join(" or ")}, not ${JSON.stringify(strategy.value)}`,
    );
  } else if (enabled?.value === true) {
    document.take("placement.strategy", strategy?.value ?? "global", (strategy ?? enabled).valueAt);
  } else {
    document.take("placement.strategy", "local", (enabled ?? of("self_name") ?? strategy)?.valueAt ?? 0);
  }
  if (stateFile) document.take("placement.state_file", stateFile.value, stateFile.valueAt);
}

function takeMilliseconds(document: YamlDocument, entry: Entry | undefined, path: string): number | null {
  if (!entry) return null;
  const { value: seconds, valueAt } = entry;
  if (typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0) {
    const ms = Math.round(seconds * 1_000);
    document.take(path, `${ms}ms`, valueAt);
    return ms;
  }
  const must = `${entry.key} must be a number of seconds above 0, not ${JSON.stringify(seconds)}`;
  document.mistake(valueAt, must);
  return null;
}
