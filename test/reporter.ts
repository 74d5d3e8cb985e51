/** One line a test file, the failures in full, and a last line that counts. */

import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";

interface FileTally {
  passed: number;
  failed: number;
  skipped: number;
  durationMs: number;
}

interface Outcome {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string;
  readonly skip?: string | boolean;
  readonly details: {
    readonly type?: string;
    readonly duration_ms: number;
    readonly error?: Error & { cause?: unknown };
  };
}

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files = new Map<string, FileTally>();
  const failures: string[] = [];
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    const outcome = data as Outcome;
    const file = relative(process.cwd(), outcome.file ?? outcome.name);
    const tally = files.get(file) ?? { passed: 0, failed: 0, skipped: 0, durationMs: 0 };
    files.set(file, tally);
    if (outcome.nesting === 0) tally.durationMs += outcome.details.duration_ms;
    if (type === "test:fail") {
      const { error } = outcome.details;
      failures.push(`✖ ${file}: ${outcome.name}\n${indent(reason(error))}`);
      yield `✖ ${file}: ${outcome.name}\n`;
    }
    if (outcome.details.type === "suite") continue;
    if (outcome.skip) tally.skipped++;
    else if (type === "test:pass") tally.passed++;
    else tally.failed++;
    if (outcome.skip && typeof outcome.skip === "string")
      yield `- skipped: ${outcome.name} (${outcome.skip})\n`;
  }
  for (const [file, { passed, failed, skipped, durationMs }] of [...files].sort(([a], [b]) =>
    a < b ? -1 : 1,
  )) {
    const counts = [`${passed} ok`, failed && `${failed} FAILED`, skipped && `${skipped} skipped`].filter(
      Boolean,
    );
    yield `${failed ? "✖" : "✔"} ${file}: ${counts.join(", ")} (${(durationMs / 1_000).toFixed(1)} s)\n`;
  }
  if (failures.length > 0) yield `\n${failures.join("\n\n")}\n`;
  const sum = (key: "passed" | "failed" | "skipped"): number =>
    [...files.values()].reduce((total, tally) => total + tally[key], 0);
  yield `\n${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped\n`;
}

function reason(error: (Error & { cause?: unknown }) | undefined): string {
  const failed = error?.cause instanceof Error ? error.cause : error;
  const told = failed?.stack ?? String(error?.cause);
  // A property that failed has what went wrong below it.
  return failed?.cause instanceof Error ? `${told}\n${reason(failed.cause)}` : told;
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, "    ");
}
