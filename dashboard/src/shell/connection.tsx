/** Whether what is shown is still so. */

import { signal } from "@preact/signals";
import { call } from "../api/call.ts";
import { line, link, overview } from "../api/live.ts";
import { second } from "../clock.ts";
import { duration } from "../parts/format.ts";
import { pageAt } from "../parts/links.tsx";

/** Where the other nodes are, for the moment when this one is gone. */
const others = signal<readonly { name: string; url: string }[]>([]);

/** A break of less than that is no news: streams are ended when a node closes them. */
const QUIET_MS = 1_500;

let askedFor: string | null = null;

async function learnOthers(): Promise<void> {
  const { nodes } = await call("GET /cluster/nodes");
  const own = overview.peek()?.node;
  others.value = nodes.flatMap(({ name, url, status }) => {
    const page = status === "dead" || name === own ? null : pageAt(url);
    return page === null ? [] : [{ name, url: page }];
  });
}

const STATES = {
  live: ["live", "good"],
  connecting: ["connecting…", "off"],
  lost: ["reconnecting…", "bad"],
  refused: ["signed out", "bad"],
} as const;

export function LinkState() {
  const { state } = link.value;
  const node = overview.value?.node;
  const [text, tone] = STATES[state];
  return (
    <span class={`link ${state} ${tone}`} role="status">
      {text}
      {node && state === "live" && <span class="muted"> · connected to {node}</span>}
    </span>
  );
}

export function ConnectionBanner() {
  const { state, since, why } = link.value;
  const now = overview.value;
  // Parts for while all is well, and again when the cluster changes.
  const shape = now && `${now.node} ${now.cluster.total_nodes} ${now.cluster.dead_nodes}`;
  if (state === "live" && shape !== null && shape !== askedFor) {
    askedFor = shape;
    void learnOthers().catch(() => {
      askedFor = null;
    });
  }
  if (state !== "lost") return null;
  void second.value; // counts on
  const forMs = Date.now() - since;
  if (forMs < QUIET_MS) return null;
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>Disconnected from {now?.node ?? "the node"}</strong> for {duration(forMs)}: {why}.
        Reconnecting… What is below is from before.
      </p>
      <p class="row">
        <button type="button" class="small" onClick={() => line.retry()}>
          Try now
        </button>
        {others.value.length > 0 && (
          <span>
            Other nodes show the same cluster:{" "}
            {others.value.map(({ name, url }) => (
              <>
                <a href={url} rel="noreferrer">
                  {name}
                </a>{" "}
              </>
            ))}
          </span>
        )}
      </p>
    </div>
  );
}

export function PartialBanner() {
  const now = overview.value;
  if (!now?.partial) return null;
  return (
    <div class="note wait banner" role="status">
      <p>
        <strong>{now.unreachable.join(", ") || "Some nodes"}</strong> cannot be reached: lists and numbers are
        those of the others, until it is back.
      </p>
    </div>
  );
}
