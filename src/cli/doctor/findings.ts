/** The results of checks: severity, one sentence, and what to do about it; and how they are printed. */

import { several } from "../../core/format-figures.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ClockReading } from "./clocks.ts";
import { wrapped } from "../terminal/plain-text.ts";
import { type Style, styled, type Terminal } from "../terminal/terminal.ts";

/** `skipped`: it could not or need not be looked at, and the message says why. */
export type Verdict = "ok" | "warning" | "failed" | "skipped";

export interface Judgement {
  readonly verdict: Verdict;
  readonly message: string;
  readonly remedy: string | null;
}

export interface Finding extends Judgement {
  readonly check: string;
}

type Judge = (message: string, remedy: string) => Judgement;

export const ok = (message: string): Judgement => ({ verdict: "ok", message, remedy: null });
export const warning: Judge = (message, remedy) => ({ verdict: "warning", message, remedy });
export const failed: Judge = (message, remedy) => ({ verdict: "failed", message, remedy });
export const skipped = (message: string, remedy: string | null = null): Judgement => {
  return { verdict: "skipped", message, remedy };
};

/** A row of a table of rules: what is wrong, or false where the rule is kept. */
export type Rule = Judgement | false;

/** What is wrong by the rules, or the sentence that says that all is well. */
export function judged(rules: readonly Rule[], fine: string): readonly Judgement[] {
  const problems = rules.filter((rule) => rule !== false);
  return problems.length > 0 ? problems : [ok(fine)];
}

export interface Question {
  readonly url: string;
  readonly clock: Clock;
  readonly deadlineMs: number;
}

export interface Answer<Facts> {
  readonly facts: Facts;
  readonly clock: ClockReading;
}

export function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [first = 0, second = 0] = version.replace(/^v/, "").split(".").map(Number);
  return first > major || (first === major && second >= minor);
}

const STYLES: Readonly<Record<Verdict, Style>> = {
  ok: "green",
  warning: "yellow",
  failed: "red",
  skipped: "dim",
};
const MARGIN = 2;

export function reportText(terminal: Terminal, all: readonly Finding[]): string {
  const { out } = terminal;
  const findings = [...all.filter(({ verdict }) => verdict !== "skipped"), ...joined(all)];
  const verdictWidth = Math.max(...findings.map(({ verdict }) => verdict.length)) + MARGIN;
  const checkWidth = Math.max(...findings.map(({ check }) => check.length)) + MARGIN;
  const indent = verdictWidth + checkWidth;
  const width = Math.max(30, (out.isTTY ? (out.columns ?? 80) : 120) - indent);
  const lines = findings.flatMap(({ verdict, check, message, remedy }) => {
    const [first = "", ...rest] = wrapped(message, width);
    const todo = remedy === null ? [] : wrapped(remedy, width - MARGIN);
    return [
      styled(out, STYLES[verdict], verdict.padEnd(verdictWidth)) + check.padEnd(checkWidth) + first,
      ...rest.map((line) => " ".repeat(indent) + line),
      ...todo.map((line, at) => " ".repeat(indent) + styled(out, "cyan", (at === 0 ? "→ " : "  ") + line)),
    ];
  });
  return lines.join("\n");
}

function joined(all: readonly Finding[]): Finding[] {
  const skips = all.filter(({ verdict }) => verdict === "skipped");
  const groups = Map.groupBy(skips, ({ message }) => message);
  return [...groups.values()].map((group) => {
    const names = [...new Set(group.map(({ check }) => check))];
    if (names.length === 1) return group[0]!;
    return { ...group[0]!, check: "", message: `${names.join(", ")}: ${group[0]!.message}` };
  });
}

export function countsOf(findings: readonly Finding[]): Readonly<Record<Verdict, number>> {
  const counts = { ok: 0, warning: 0, failed: 0, skipped: 0 };
  for (const { verdict } of findings) counts[verdict]++;
  return counts;
}

export function summary(findings: readonly Finding[]): string {
  const { ok, warning, failed, skipped } = countsOf(findings);
  return [
    `${ok} ok`,
    several(warning, "warning"),
    `${failed} failed`,
    ...(skipped > 0 ? [`${skipped} not looked at`] : []),
  ].join(", ");
}
