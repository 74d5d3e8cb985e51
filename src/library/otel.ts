/**
 * `batonjs/otel`: the application's own API of OpenTelemetry for a node. Without it a node finds the API that the SDK is
 * registered with, which is the same in nearly every installation.
 *
 *     import * as api from "@opentelemetry/api";
 *     const baton = await createNode({ tasks, telemetry: openTelemetry(api) });
 */

import { BatonError } from "../core/errors.ts";
import type { Telemetry } from "../platform/telemetry/telemetry.ts";

export type { Telemetry } from "../platform/telemetry/telemetry.ts";

/** What all versions of the API have. */
export interface OpenTelemetryApi {
  readonly context: object;
  readonly trace: object;
  readonly metrics: object;
}

export function openTelemetry(api: OpenTelemetryApi): Telemetry {
  for (const name of ["context", "trace", "metrics"] as const) {
    if (typeof api?.[name] === "object") continue;
    const remedy = 'give all of it: import * as api from "@opentelemetry/api"';
    throw new BatonError("BAD_CONFIG", `"api" has no ${name}; ${remedy}`, { field: "api" });
  }
  return { api };
}
