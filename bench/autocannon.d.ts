/** The part of autocannon that is used here; it ships no types. */
declare module "autocannon" {
  interface Options {
    /** Connections go to several in turn. */
    readonly url: string | readonly string[];
    readonly method: "GET" | "POST";
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly connections: number;
    /** Seconds. */
    readonly duration: number;
    /** How often it looks whether the time is over, in ms. */
    readonly sampleInt: number;
  }
  interface Result {
    readonly "2xx": number;
    readonly non2xx: number;
    readonly errors: number;
    readonly timeouts: number;
    readonly duration: number;
    readonly latency: { readonly p50: number; readonly p99: number };
  }
  interface Run extends Promise<Result> {
    on(
      event: "response",
      listener: (client: unknown, status: number, bytes: number, tookMs: number) => void,
    ): void;
  }
  export default function autocannon(options: Options): Run;
}
