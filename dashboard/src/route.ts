/**
 * Where the page is, behind the `#`: `#/jobs?status=failed`. What is behind it never reaches a server, so a link works under any
 * prefix, and the paths of the API stay the API's.
 */

import { signal } from "@preact/signals";

export interface Place {
  /** Decoded steps: `/jobs/a%2Fb` is `["jobs", "a/b"]`. */
  readonly steps: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

type Query = Readonly<Record<string, string | number | null | undefined>>;

export const place = signal<Place>(read());

function read(): Place {
  const [path = "", search = ""] = location.hash.slice(1).split("?", 2);
  return {
    steps: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

addEventListener("hashchange", () => {
  place.value = read();
});

/** `to(["jobs", id])`, `to(["jobs"], { status: "failed" })`: what stands behind the `#`, with it. */
export function to(steps: readonly string[], query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const path = `#/${steps.map(encodeURIComponent).join("/")}`;
  return search.size === 0 ? path : `${path}?${search.toString()}`;
}

export function go(steps: readonly string[], query: Query = {}): void {
  location.hash = to(steps, query);
}

/** The same screen with other filters; the way back leads past it. */
export function refine(query: Query): void {
  const { steps, query: before } = place.value;
  history.replaceState(null, "", to(steps, { ...before, ...query }));
  place.value = read();
}
