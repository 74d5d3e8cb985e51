/** For the compiler alone: what arrives of a value that was sent as JSON. A Date arrives as text, a Map as an empty object. */

type Nothing = undefined | void | symbol | ((...args: never[]) => unknown);

/** Of the whole value, or in a list. */
export type JsonOf<T> = unknown extends T
  ? T
  : T extends { toJSON(...args: never[]): infer Shown }
    ? JsonOf<Shown>
    : T extends string | number | boolean | null
      ? T
      : T extends bigint
        ? never
        : T extends Nothing
          ? null
          : T extends readonly unknown[]
            ? { [Index in keyof T]: JsonOf<T[Index]> }
            : JsonFields<T>;

type Simplified<T> = { [Name in keyof T]: T[Name] };

/** Fields without a value are left out. */
type JsonFields<T> = Simplified<
  { [Name in keyof T as Kept<T, Name> extends "always" ? Name : never]: JsonOf<T[Name]> } & {
    [Name in keyof T as Kept<T, Name> extends "sometimes" ? Name : never]?: JsonOf<Exclude<T[Name], Nothing>>;
  }
>;

type Kept<T, Name extends keyof T> = Name extends symbol
  ? "never"
  : unknown extends T[Name]
    ? "always"
    : [T[Name]] extends [Nothing]
      ? "never"
      : [Extract<T[Name], Nothing>] extends [never]
        ? "always"
        : "sometimes";
