/** The OpenAPI document of the node that served this page, as far as the page shows it. */

import type { Schema } from "../parts/schema.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface Content {
  readonly content?: { readonly "application/json"?: { readonly schema: Schema } };
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly "x-permission": string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content & { readonly required: boolean };
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>;
}

export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
}

export interface ListedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: DescribedOperation;
}

export function operationsOf({ paths }: ApiDocument): ListedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

export function schemaIn({ content }: Content): Schema | null {
  return content?.["application/json"]?.schema ?? null;
}
