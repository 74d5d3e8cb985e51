/**
 * Conversion between domain objects and bodies, derived from the schema by the rules of core/wire-names.ts. Other names
 * and computed values are given with the schema. Nothing is validated here.
 *
 * A mapper to a body is compiled once, to the object literal that one would write by hand. A loop over the fields took a
 * fifth longer for each job of a list (decision 0024).
 */

import type { z } from "zod";
import { camelOf, type CamelName, isTimeName, type TimeName } from "../../core/wire-names.ts";

type TimeValue<Value> = Value extends string ? number : Value;

export type Camel<Body> = Body extends readonly (infer Item)[]
  ? readonly Camel<Item>[]
  : Body extends object
    ? {
        readonly [Name in keyof Body as CamelName<Name & string>]: CamelValue<Name, Body[Name]>;
      }
    : Body;

type CamelValue<Name, Value> = Name extends TimeName ? TimeValue<Value> : Camel<Value>;

/** Fields with another source: the name of a property, or a function of the whole object. */
type Sources<Body> = { readonly [Name in keyof Body]?: string | ((source: never) => Body[Name]) };

type SourceName<Name, Given> = Name extends keyof Given
  ? Given[Name] extends string
    ? Given[Name]
    : never
  : CamelName<Name & string>;

type Source<Body, Given = {}> = Body extends readonly (infer Item)[]
  ? readonly Source<Item>[]
  : Body extends object
    ? {
        readonly [
          Name in keyof Body as null extends Body[Name] ? never : SourceName<Name, Given>
        ]: SourceValue<Name, Body[Name]>;
      } & {
        readonly [
          Name in keyof Body as null extends Body[Name] ? SourceName<Name, Given> : never
        ]?: SourceValue<Name, Body[Name]>;
      } & Argument<Given[keyof Given]>
    : Body;
type SourceValue<Name, Value> = Name extends TimeName ? TimeValue<Value> : Source<Value>;

type Argument<Given> = [Extract<Given, Function>] extends [never]
  ? unknown
  : Extract<Given, Function> extends (source: infer S) => unknown
    ? S
    : unknown;

export function toWire<S extends z.ZodObject, const Given extends Sources<z.output<S>> = {}>(
  schema: S,
  given: Given = {} as Given,
): (source: Source<z.output<S>, Given>) => z.output<S> {
  const functions: unknown[] = [];
  const literal = literalOf(schema, "source", given, functions);
  // Made of names of our own schemas alone.
  // oxlint-disable-next-line typescript/no-implied-eval
  const make = new Function("iso", "given", `return (source) => (${literal})`);
  return make(isoOf, functions);
}

export function isoOf(at: number): string {
  return new Date(at).toISOString();
}

function literalOf(
  { shape }: z.ZodObject,
  source: string,
  given: Readonly<Record<string, string | ((source: never) => unknown) | undefined>> = {},
  functions: unknown[] = [],
): string {
  const fields = Object.entries(shape).map(([wire, schema]) => {
    const own = given[wire];
    if (typeof own === "function") return `${wire}: given[${functions.push(own) - 1}](source)`;
    return `${wire}: ${expressionOf(wire, schema as z.ZodType, `${source}.${own ?? camelOf(wire)}`)}`;
  });
  return `{ ${fields.join(", ")} }`;
}

function expressionOf(wire: string, schema: z.ZodType, source: string): string {
  const { inner, nullable } = unwrapped(schema);
  const present = valueOf(wire, inner, source);
  if (present === source) return nullable ? `${source} ?? null` : source;
  return `${source} == null ? ${nullable ? "null" : "undefined"} : ${present}`;
}

/** The source itself where nothing has to be renamed or converted. */
function valueOf(wire: string, schema: z.ZodType, source: string): string {
  if (isObject(schema)) return isSame(schema) ? source : literalOf(schema, source);
  if (isArray(schema)) {
    const element = schema.element as z.ZodType;
    const each = valueOf("", element, "each");
    return each === "each" ? source : `${source}.map((each) => (${each}))`;
  }
  return isInstant(wire, schema) ? `iso(${source})` : source;
}

function isSame({ shape }: z.ZodObject): boolean {
  return Object.entries(shape).every(([wire, schema]) => {
    const { inner } = unwrapped(schema as z.ZodType);
    return camelOf(wire) === wire && valueOf(wire, inner, "") === "";
  });
}

type Converter = (value: never) => unknown;
type Renamed<Body, Given> = {
  readonly [Name in keyof Body as SourceName<Name, Given>]: CamelValue<Name, Body[Name]>;
};

/** The mapper from bodies to the domain. A field may have another name there. */
export function fromWire<
  S extends z.ZodObject,
  const Given extends { readonly [Name in keyof z.output<S>]?: string } = {},
>(schema: S, given: Given = {} as Given): (body: z.output<S>) => Renamed<z.output<S>, Given> {
  const names: Readonly<Record<string, string | undefined>> = given;
  const fields = new Map(
    Object.entries(schema.shape).map(([wire, field]) => {
      const convert = converterOf(wire, field as z.ZodType) as ((value: unknown) => unknown) | null;
      return [wire, { name: names[wire] ?? camelOf(wire), convert }] as const;
    }),
  );
  return (body) => {
    const found: Record<string, unknown> = {};
    // Only what was given: for a job that is little more than the task and the payload.
    for (const wire in body) {
      const { name, convert } = fields.get(wire)!;
      const value: unknown = body[wire];
      found[name] = convert === null || value == null ? value : convert(value);
    }
    return found as never;
  };
}

function converterOf(wire: string, schema: z.ZodType): Converter | null {
  const { inner } = unwrapped(schema);
  if (isInstant(wire, inner)) return Date.parse;
  if (isObject(inner)) return isSame(inner) ? null : fromWire(inner);
  if (!isArray(inner)) return null;
  const each = converterOf("", inner.element as z.ZodType) as ((value: unknown) => unknown) | null;
  return each && ((values: readonly unknown[]) => values.map(each));
}

function isInstant(wire: string, schema: z.ZodType): boolean {
  return schema.type === "string" && isTimeName(wire);
}

function isObject(schema: z.ZodType): schema is z.ZodObject {
  return schema.type === "object";
}

function isArray(schema: z.ZodType): schema is z.ZodArray {
  return schema.type === "array";
}

function unwrapped(schema: z.ZodType): { readonly inner: z.ZodType; readonly nullable: boolean } {
  let [inner, nullable] = [schema, false];
  while (inner.type === "nullable" || inner.type === "optional" || inner.type === "default") {
    nullable ||= inner.type === "nullable";
    inner = (inner as z.ZodNullable<z.ZodType>).unwrap();
  }
  return { inner, nullable };
}
