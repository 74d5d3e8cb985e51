/** What an application says of its OpenTelemetry. Apart, because the types of the API need a package that most do not have. */

/** The API as an application has it, passed to a node by `openTelemetry` of `batonjs/otel`. Typed by nobody's version of it. */
export interface Telemetry {
  readonly api: object;
}

export interface TelemetryOptions {
  readonly telemetry?: Telemetry;
  /** Told once why nothing is recorded although an SDK is registered. */
  readonly warn?: (message: string) => void;
}
