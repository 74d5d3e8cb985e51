/**
 * The application's API of OpenTelemetry: where its SDK is registered, sooner or later than this node starts. Looked for
 * whenever something could be recorded, so an SDK that is registered later counts from then on. Where one is registered
 * that cannot be used from here, that is said once, with what to do about it.
 */

import type * as Api from "@opentelemetry/api";
import { BatonError } from "../../core/errors.ts";
import { loadPackage, OPTIONAL_PACKAGES } from "../load-package.ts";
import type { TelemetryOptions } from "./telemetry.ts";

type OpenTelemetryApi = typeof Api;

/** What the API keeps for all its copies of one major version in a process. */
interface Registered {
  readonly version?: string;
  readonly trace?: Api.TracerProvider;
  readonly metrics?: Api.MeterProvider;
}

const KEY = Symbol.for("opentelemetry.js.api.1");
const NEXT_KEY = Symbol.for("opentelemetry.js.api.2");
const PACKAGE = "@opentelemetry/api";
const { range: RANGE } = OPTIONAL_PACKAGES[PACKAGE]!;
const HAND_OVER =
  "pass your own to the node, { telemetry: openTelemetry(api) } with openTelemetry of batonjs/otel";

type Global = { readonly [KEY]?: Registered; readonly [NEXT_KEY]?: object };

let loaded: OpenTelemetryApi | null = null;

export class TelemetryApi {
  readonly #given: OpenTelemetryApi | null;
  readonly #warn: (message: string) => void;
  #warned = false;
  #missing = false;

  constructor({ telemetry, warn = () => {} }: TelemetryOptions = {}) {
    this.#given = (telemetry?.api as OpenTelemetryApi | undefined) ?? null;
    this.#warn = warn;
  }

  /** Null until an SDK is registered. The package is loaded only then: before, nothing can record. */
  get(): OpenTelemetryApi | null {
    if (this.#given) return this.#given;
    const registered = (globalThis as Global)[KEY];
    if (registered) return this.#load(registered);
    if (NEXT_KEY in globalThis)
      this.#say(`version 2 of ${PACKAGE} is registered, and Baton uses ${RANGE}; ${HAND_OVER}`);
    return null;
  }

  /** As `get`, for callers that have seen that there is one. */
  require(): OpenTelemetryApi {
    return this.#given ?? (loaded ??= loadPackage<OpenTelemetryApi>(PACKAGE));
  }

  tracerProvider(): Api.TracerProvider | null {
    const api = this.get();
    return api && this.#shared("trace", api.trace.getTracerProvider());
  }

  meterProvider(): Api.MeterProvider | null {
    const api = this.get();
    return api && this.#shared("metrics", api.metrics.getMeterProvider());
  }

  /** A copy of the API gives what is registered to itself and to older copies alone; to others, one that records nothing. */
  #shared<Provider>(kind: "trace" | "metrics", seen: Provider): Provider | null {
    if (this.#given) return seen;
    const registered = (globalThis as Global)[KEY];
    const provider = registered?.[kind];
    if (provider === undefined) return null;
    if (provider === seen) return seen;
    const version = registered?.version ?? "of another version";
    this.#say(
      `the SDK is registered with ${PACKAGE} ${version}, and Baton has found a newer copy, which does not share with it; keep one copy (npm ls ${PACKAGE} shows them), or ${HAND_OVER}`,
    );
    return null;
  }

  #load(registered: Registered): OpenTelemetryApi | null {
    if (this.#missing) return null;
    try {
      return this.require();
    } catch (error) {
      if (!(error instanceof BatonError)) throw error;
      // The API alone registers what it needs itself, such as a logger; that nothing is traced then is no surprise.
      if (registered.trace === undefined && registered.metrics === undefined) return null;
      this.#missing = true;
      this.#say(
        `an SDK is registered, and Baton does not find ${PACKAGE}; type: npm install "${PACKAGE}@${RANGE}", or ${HAND_OVER}`,
      );
      return null;
    }
  }

  #say(why: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#warn(`OpenTelemetry gets no spans and no metrics of Baton: ${why}`);
  }
}
