/** Turns the errors of Ajv about a request into a message with the field and the remedy. */

import { BatonError, invalid, nearest, type ErrorCode, type Issue } from "../../core/errors.ts";

/** The part of Ajv's report that is used; `parentSchema` and `data` need its `verbose` option. */
export interface Finding {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
  readonly data?: unknown;
  readonly parentSchema?: Readonly<Record<string, unknown>>;
}

export type Part = "body" | "querystring" | "params" | "headers" | (string & {});

export interface InvalidPart {
  readonly part: Part;
  readonly findings: readonly Finding[];
}

/** Of a request with at least one invalid part: the first mistake of each field. */
export function invalidInput(parts: readonly InvalidPart[]): BatonError {
  const issues = new Map<string, Issue>();
  for (const { part, findings } of parts) {
    for (const finding of telling(findings)) {
      const field = fieldOf(finding);
      const place = `${part} ${field}`;
      if (!issues.has(place)) issues.set(place, { field, message: messageOf(finding, field, part) });
    }
  }
  const [first] = issues.values() as Iterable<Issue>;
  const [{ part }] = parts as readonly [InvalidPart];
  const code: ErrorCode = part === "params" && first!.field === "id" ? "BAD_ID" : "BAD_REQUEST";
  // What is wrong with a whole part has no field.
  if (issues.size === 1 && first!.field === "") return new BatonError(code, first!.message);
  return invalid(code, [...issues.values()]);
}

/**
 * A body that may be an object or an array is reported against both. The branch that was not meant complains about
 * the type of the whole, so what is left belongs to the other; nothing left means that it was neither.
 */
function telling(findings: readonly Finding[]): readonly Finding[] {
  const inside = findings.filter(
    (finding) => finding.keyword !== "anyOf" && !(finding.keyword === "type" && finding.instancePath === ""),
  );
  return inside.length > 0 ? inside : findings.slice(-1);
}

/** `/3/priority` becomes `[3].priority`. */
function fieldOf(finding: Finding): string {
  const steps = finding.instancePath.split("/").slice(1).map(unescape);
  if (finding.keyword === "required") steps.push(String(finding.params["missingProperty"]));
  if (finding.keyword === "additionalProperties") steps.push(String(finding.params["additionalProperty"]));
  let field = "";
  for (const step of steps) {
    if (/^\d+$/.test(step)) field += `[${step}]`;
    else field += field === "" ? short(step) : `.${short(step)}`;
  }
  return field;
}

function unescape(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

function messageOf(finding: Finding, field: string, part: Part): string {
  const subject = field === "" ? `the ${wordFor(part)}` : `"${field}"`;
  const schema = finding.parentSchema ?? {};
  // Nothing at all reaches the validator as null.
  if (field === "" && finding.data === null) return `${subject} is missing; send it as JSON`;
  switch (finding.keyword) {
    case "additionalProperties":
      return unknownField(finding, subject, part);
    case "required":
      return `${subject} is missing${describe(schema, finding)}`;
    case "anyOf":
      return `${subject} must be an object or an array of objects, not ${kindOf(finding.data)}`;
    case "type":
      return `${subject} must be ${expected(finding, schema)}, not ${kindOf(finding.data)}`;
    case "enum":
      return notAmong(finding, subject);
    case "minItems":
    case "maxItems":
      return `${subject} must have ${Number(schema["minItems"] ?? 0)} to ${Number(schema["maxItems"])} items`;
    default:
      return `${subject} must be ${remedy(finding, schema)}`;
  }
}

function unknownField(finding: Finding, subject: string, part: Part): string {
  const name = String(finding.params["additionalProperty"]);
  const known = Object.keys((finding.parentSchema?.["properties"] as object | undefined) ?? {});
  const near = nearest(short(name), known);
  const noun = part === "querystring" ? "parameter" : "field";
  const advice = near === null ? `known are ${known.join(", ")}` : `did you mean "${near}"?`;
  return `${subject} is not a known ${noun}; ${advice}`;
}

function notAmong(finding: Finding, subject: string): string {
  const allowed = (finding.params["allowedValues"] as readonly (string | null)[]).filter(
    (value) => value !== null,
  );
  const near = typeof finding.data === "string" ? nearest(short(finding.data), allowed) : null;
  const advice = near === null ? "" : `; did you mean "${near}"?`;
  return `${subject} must be one of ${allowed.join(", ")}${advice}`;
}

function describe(schema: Readonly<Record<string, unknown>>, finding: Finding): string {
  const properties = schema["properties"] as Record<string, { description?: string }> | undefined;
  const description = properties?.[String(finding.params["missingProperty"])]?.description;
  return description === undefined ? "" : `; it must be ${description}`;
}

function remedy(finding: Finding, schema: Readonly<Record<string, unknown>>): string {
  const description = schema["description"];
  if (typeof description === "string") return description;
  return finding.message?.replace(/^must be /, "").replace(/^must /, "such that it must ") ?? "valid";
}

function expected(finding: Finding, schema: Readonly<Record<string, unknown>>): string {
  const description = schema["description"];
  if (typeof description === "string") return description;
  const types = [finding.params["type"]].flat().filter((type) => type !== "null");
  return types.map((type) => `${/^[aeio]/.test(String(type)) ? "an" : "a"} ${String(type)}`).join(" or ");
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return `the ${typeof value} ${short(JSON.stringify(value))}`;
}

function wordFor(part: Part): string {
  if (part === "querystring") return "query";
  return part === "params" ? "path" : part;
}

/** What a caller sent comes back in the answer only in a size that a line of a log can bear. */
function short(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
