import { minute, second } from "../clock.ts";
import { ago, clock, dayAndClock, duration, exact } from "./format.ts";

const NEAR_MS = 90_000;

/** How long ago, or in how long; the exact instant when one points at it. */
export function Ago({ at, none = "–" }: { at: string | null; none?: string }) {
  if (at === null) return <span class="muted">{none}</span>;
  const instant = Date.parse(at);
  // Near ones are counted by the second, the others by the minute.
  const now =
    Math.abs(second.peek() - instant) < NEAR_MS ? second.value : Math.max(minute.value, second.peek());
  return (
    <time dateTime={at} title={exact(instant)}>
      {ago(instant, now)}
    </time>
  );
}

/** The time of day, with the date if it is not today's. */
export function At({ at }: { at: string }) {
  const instant = Date.parse(at);
  const today = Math.abs(second.peek() - instant) < 12 * 3_600_000;
  return (
    <time dateTime={at} title={exact(instant)} class="num">
      {today ? clock(instant) : dayAndClock(instant)}
    </time>
  );
}

/** How long something has taken so far, or took. */
export function Took({ from, until }: { from: string; until: string | null }) {
  const end = until === null ? second.value : Date.parse(until);
  return <span class="num">{duration(end - Date.parse(from))}</span>;
}
