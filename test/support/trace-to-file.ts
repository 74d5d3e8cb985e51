/** For `node --import`: what an operator does who registers an SDK before the program. Spans go to the file in TRACE_FILE, a line each. */

import { appendFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { MemoryTracer } from "./memory-tracer.ts";

const file = process.env["TRACE_FILE"];
if (file !== undefined && isMainThread)
  new MemoryTracer((span) => appendFileSync(file, `${JSON.stringify(span)}\n`)).register();
