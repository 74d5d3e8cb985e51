/** The result of a check: its severity, one sentence, and what to do about it. */

export const VERDICTS = ["ok", "warning", "failed", "skipped"] as const;
/** `skipped`: it could not or need not be looked at, and the message says why. */
export type Verdict = (typeof VERDICTS)[number];

export interface Judgement {
  readonly verdict: Verdict;
  readonly message: string;
  readonly remedy: string | null;
}

export interface Finding extends Judgement {
  readonly check: string;
}

export function ok(message: string): Judgement {
  return { verdict: "ok", message, remedy: null };
}

export function warning(message: string, remedy: string): Judgement {
  return { verdict: "warning", message, remedy };
}

export function failed(message: string, remedy: string): Judgement {
  return { verdict: "failed", message, remedy };
}

export function skipped(message: string, remedy: string | null = null): Judgement {
  return { verdict: "skipped", message, remedy };
}

/** The sentence that is told when nothing is wrong, or what is. */
export function unless(problems: readonly Judgement[], fine: string): readonly Judgement[] {
  return problems.length > 0 ? problems : [ok(fine)];
}
