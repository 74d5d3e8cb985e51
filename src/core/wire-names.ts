/**
 * How the two spellings of a name and a value belong together: snake_case, ISO 8601 and milliseconds on the wire;
 * camelCase, Date and `Duration` in code. The bodies of the API, the client and the services of a node all follow it.
 *
 *   wire         services of a node       programs
 *   created_at   createdAt: number        createdAt: Date
 *   timeout_ms   timeoutMs: number        timeout: Duration, and read as a number of milliseconds
 *   next_cursor  nextCursor               nextCursor
 *
 * Where an option of a job has another name, core/jobs/job-fields.ts says so.
 */

export type CamelName<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelName<Tail>>}`
  : Name;

/** Of a time on the wire. */
export type TimeName = "at" | "since" | "until" | `${string}_at` | `${string}_until`;

export function camelOf(wire: string): string {
  return wire.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

export function isTimeName(wire: string): boolean {
  return /^(at|since|until)$|_(at|until)$/.test(wire);
}

/** Data of users, or keyed by names that users chose: taken as it is. */
const OPAQUE = ["payload", "result", "error", "counts", "schema"] as const;
type Opaque = (typeof OPAQUE)[number];
const IS_OPAQUE: ReadonlySet<string> = new Set(OPAQUE);

export type PublicName<Name extends string> = Name extends `${infer Head}_ms`
  ? CamelName<Head>
  : CamelName<Name>;

/** `Own`: names that do not follow the rule. */
export type PublicForm<
  Body,
  Own extends Readonly<Record<string, string>> = {},
> = Body extends readonly (infer Item)[]
  ? readonly PublicForm<Item, Own>[]
  : Body extends object
    ? {
        readonly [
          Name in keyof Body as Name extends keyof Own ? Own[Name] : PublicName<Name & string>
        ]: Name extends Opaque
          ? Body[Name]
          : Name extends TimeName
            ? TimeIn<Body[Name]>
            : PublicForm<Body[Name], Own>;
      }
    : Body;
type TimeIn<Value> = Value extends string ? Date : Value;

/** A body as programs read it. */
export function publicForm<Body, const Own extends Readonly<Record<string, string>> = {}>(
  body: Body,
  own: Own = {} as Own,
): PublicForm<Body, Own> {
  return formOf(body, own) as PublicForm<Body, Own>;
}

function formOf(body: unknown, own: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(body)) return body.map((item) => formOf(item, own));
  if (typeof body !== "object" || body === null) return body;
  const entries = Object.entries(body).map(([wire, value]: [string, unknown]) => {
    const name = own[wire] ?? camelOf(wire.replace(/_ms$/, ""));
    if (IS_OPAQUE.has(wire)) return [name, value];
    const isTime = typeof value === "string" && isTimeName(wire);
    return [name, isTime ? new Date(value) : formOf(value, own)];
  });
  return Object.fromEntries(entries);
}
