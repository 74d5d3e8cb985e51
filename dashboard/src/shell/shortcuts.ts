/** Keys, for those who do not reach for the mouse. Never while somebody types, and never with Ctrl, Alt or Meta. */

import { go } from "../route.ts";
import { helpOpen } from "./help.tsx";
import { screens } from "./screens.ts";
import { nextTheme } from "./theme.ts";

/** How long `g` waits for the second key. */
const PAIR_MS = 1_500;
/** Until another screen is there. */
const DRAWN_MS = 100;

let leader: number | null = null;

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") && event.key !== "Escape") return;
    if (react(event.key)) event.preventDefault();
  });
}

const KEYS: Readonly<Record<string, () => void>> = {
  g: () => {
    leader = Date.now();
  },
  "/": focusSearch,
  c: () => go(["jobs", "new"]),
  t: nextTheme,
  "?": () => {
    helpOpen.value = true;
  },
};

function react(key: string): boolean {
  const paired = leader !== null && Date.now() - leader < PAIR_MS;
  leader = null;
  const screen = screens().find((each) => each.key === key);
  const act = paired ? screen && (() => go([screen.step])) : KEYS[key];
  act?.();
  return act !== undefined;
}

function focusSearch(): void {
  const field = (): HTMLInputElement | null => document.querySelector("input[type=search]");
  if (field()) return field()!.focus();
  go(["jobs"]);
  setTimeout(() => field()?.focus(), DRAWN_MS);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && target.type === "checkbox")
  );
}
