import type { Log, LogFields } from "../../src/platform/log.ts";

export interface RecordingLog extends Log {
  readonly lines: { readonly level: string; readonly fields: LogFields; readonly message: string }[];
  about(text: string): number;
  matching(message: RegExp): LogFields[];
}

export function recordingLog(): RecordingLog {
  const lines: RecordingLog["lines"] = [];
  const at = (level: string) => (fields: LogFields, message: string) =>
    void lines.push({ level, fields, message });
  return {
    lines,
    about: (text) => lines.filter(({ message }) => message.includes(text)).length,
    matching: (text) => lines.filter(({ message }) => text.test(message)).map(({ fields }) => fields),
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}
