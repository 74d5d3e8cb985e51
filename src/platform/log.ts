/** Logs: JSON on stdout, readable lines on a terminal. All other code depends only on the small interface. */

import type Pino from "pino";
import { loadPackage } from "./load-package.ts";
import { prettyStream, type LineStream } from "./pretty-log.ts";

export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  /** `auto` is pretty on a terminal. */
  readonly format: "auto" | "json" | "pretty";
  readonly name: string;
  readonly destination?: LineStream;
}

/** Wherever these stand, at the top of a line's fields or one level down, their values are not written. */
const SECRETS = [
  "password",
  "secret",
  "token",
  "authorization",
  "cookie",
  "credentials",
  "api_key",
  "apiKey",
];
const REDACTED = [...SECRETS, ...SECRETS.map((name) => `*.${name}`), ...SECRETS.map((name) => `*.*.${name}`)];

export function createLog(options: LogOptions): Log {
  const pino = loadPackage<typeof Pino>("pino");
  const terminal = options.destination === undefined && process.stdout.isTTY;
  const pretty = options.format === "pretty" || (options.format === "auto" && terminal);
  // Both write synchronously: the line that tells why a process ended must not die with it.
  const lines = options.destination ?? pino.destination({ fd: 1, sync: true });
  const stream = pretty ? prettyStream(lines, terminal && !process.env["NO_COLOR"]) : lines;
  return pino(
    {
      level: options.level,
      base: { node: options.name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: pino.stdSerializers.err, error: pino.stdSerializers.err },
      redact: { paths: REDACTED, censor: "[hidden]" },
    },
    stream,
  );
}

/** The same with more in every line; what a line says itself goes first. */
export function withFields(log: Log, more: () => LogFields): Log {
  return {
    debug: (fields, message) => log.debug({ ...more(), ...fields }, message),
    info: (fields, message) => log.info({ ...more(), ...fields }, message),
    warn: (fields, message) => log.warn({ ...more(), ...fields }, message),
    error: (fields, message) => log.error({ ...more(), ...fields }, message),
  };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
