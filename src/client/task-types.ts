/** For the compiler alone: the names, payloads and results of the tasks that a client is told of. */

import type { JsonOf } from "../core/json.ts";
import type { JobOptions } from "../core/jobs/job-options.ts";
import type { AnyTask, Task } from "../jobs/tasks/task.ts";

interface Sides {
  readonly payload: unknown;
  readonly result: unknown;
}

export type AnyTasks = readonly Task[];

/** By name. Tasks come as a list, or as the exports of a module; there a handler without a name has that of its export. */
export type TaskTypes<Tasks> = Tasks extends readonly (infer Each)[]
  ? { readonly [One in Extract<Each, AnyTask> as One["name"]]: SidesOf<One> }
  : {
      readonly [
        Key in keyof Tasks & string as Tasks[Key] extends AnyTask | AnyHandler
          ? NameOf<Tasks[Key], Key>
          : never
      ]: SidesOf<Tasks[Key]>;
    };

type AnyHandler = (payload: never, ...rest: never[]) => unknown;

type NameOf<Each, Key> =
  Each extends Task<any, any, any, infer Name> ? (string extends Name ? Key : Name) : Key;

type SidesOf<Each> =
  Each extends Task<any, infer Result, infer Input, any>
    ? { readonly payload: Input; readonly result: JsonOf<Awaited<Result>> }
    : Each extends (payload: infer Payload, ...rest: never[]) => infer Result
      ? { readonly payload: Payload; readonly result: JsonOf<Awaited<Result>> }
      : never;

export type TaskName<Tasks> = keyof TaskTypes<Tasks> & string;

type At<Tasks, Name extends TaskName<Tasks>> = TaskTypes<Tasks>[Name] & Sides;
export type PayloadOf<Tasks, Name extends TaskName<Tasks>> = At<Tasks, Name>["payload"];
export type ResultOf<Tasks, Name extends TaskName<Tasks>> = At<Tasks, Name>["result"];

/** A payload that may be nothing may be left out. */
export type PayloadAnd<Payload, Options> = unknown extends Payload
  ? [payload?: Payload, options?: Options]
  : undefined extends Payload
    ? [payload?: Payload, options?: Options]
    : [payload: Payload, options?: Options];

export type JobEntry<Tasks> = {
  [Name in TaskName<Tasks>]: readonly [
    name: Name,
    ...rest: Readonly<PayloadAnd<PayloadOf<Tasks, Name>, JobOptions>>,
  ];
}[TaskName<Tasks>];

declare const resultOf: unique symbol;

/** The id of a job: a text, which lets the compiler know what the job results in. */
export type JobRef<Result> = string & { readonly [resultOf]?: Result };
