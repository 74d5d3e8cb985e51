/** The files of failed tests, one a line: what a second try is about. */

import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";

export default async function* failedFiles(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const told = new Set<string>();
  for await (const { type, data } of source) {
    if (type !== "test:fail") continue;
    const { file, name } = data as { file?: string; name: string };
    const path = relative(process.cwd(), file ?? name);
    if (!told.has(path)) yield `${path}\n`;
    told.add(path);
  }
}
