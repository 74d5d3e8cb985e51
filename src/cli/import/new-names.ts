/** What queues and tasks are called after an import: `--queue old=new` and `--task old=new`. */

import { InvalidArgumentError } from "commander";
import { THING_NAME } from "../../core/ids.ts";

type Renamed = readonly [old: string, name: string];

export class NewNames {
  readonly #tasks: ReadonlyMap<string, string>;
  readonly #queues: ReadonlyMap<string, string>;
  readonly #used = new Set<string>();

  constructor(tasks: readonly Renamed[], queues: readonly Renamed[]) {
    this.#tasks = new Map(tasks);
    this.#queues = new Map(queues);
  }

  queueOf(from: string): string {
    return this.#queues.get(from) ?? from;
  }

  /** The most precise one counts: `mail/welcome`, then `welcome`, then all jobs of a queue with `mail/*`. */
  taskOf(from: string, job: string): string {
    const old = [`${from}/${job}`, job, `${from}/*`].find((each) => this.#tasks.has(each));
    if (old === undefined) return job;
    this.#used.add(old);
    return this.#tasks.get(old)!;
  }

  /** Names that nothing had: mostly a slip of the finger. */
  get unused(): readonly string[] {
    return [...this.#tasks.keys()].filter((old) => !this.#used.has(old));
  }
}

export function renamedTask(text: string, before: readonly Renamed[] | undefined): readonly Renamed[] {
  const [old, name] = apart(text);
  if (name === null) throw new InvalidArgumentError("It must be as old=new.");
  return [...(before ?? []), [old, name]];
}

/** Without a new name it keeps its own. */
export function chosenQueue(text: string, before: readonly Renamed[] | undefined): readonly Renamed[] {
  const [old, name] = apart(text);
  return [...(before ?? []), [old, name ?? old]];
}

function apart(text: string): readonly [old: string, name: string | null] {
  const at = text.lastIndexOf("=");
  if (at < 0) return [text, null];
  const name = text.slice(at + 1);
  if (THING_NAME.test(name)) return [text.slice(0, at), name];
  throw new InvalidArgumentError(`"${name}" must be letters, digits and . _ : / - (up to 128).`);
}
