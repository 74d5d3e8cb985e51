import type { ComponentChildren } from "preact";
import { shortId } from "./format.ts";
import { place, to } from "../route.ts";

export function JobLink({ id, full = false }: { id: string; full?: boolean }) {
  return (
    <a class="mono" href={to(["jobs", id])} title={id}>
      {full ? id : shortId(id)}
    </a>
  );
}

export function NodeLink({ name }: { name: string | null }) {
  if (name === null) return <span class="muted">–</span>;
  return <a href={to(["nodes"], { node: name })}>{name}</a>;
}

export function QueueLink({ name }: { name: string }) {
  return <a href={to(["jobs"], { queue: name })}>{name}</a>;
}

/** The same screen on another node. What a node calls its address is taken for one only if it is of the web. */
export function pageAt(url: string | null): string | null {
  if (url === null || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return null;
  return new URL(`./${location.hash}`, url.endsWith("/") ? url : `${url}/`).href;
}

/** A place, its address, and what is shown for it. */
export type Tab = readonly [key: string, href: string, text: ComponentChildren];

type TabsProps = { label: string; current: string; children: readonly Tab[] };

export function Tabs({ label, current, children }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      {children.map(([key, href, text]) => (
        <a key={key} href={href} aria-current={key === current ? "page" : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

/** To the newest and to older pages of a list, by the cursor in the address. */
export function Pager({ next }: { next: string | null | undefined }) {
  const { steps, query } = place.value;
  return (
    <nav class="pager row" aria-label="Pages">
      {query["cursor"] && <a href={to(steps, { ...query, cursor: null })}>← Newest</a>}
      {next && <a href={to(steps, { ...query, cursor: next })}>Older →</a>}
    </nav>
  );
}
