import { shortId } from "./format.ts";
import { to } from "../route.ts";

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
