import type { Listed } from "./contenders/index.ts";
import type { Servers } from "./servers.ts";

export interface Bench {
  servers: Servers;
  entries: Listed[];
  rounds: number;
  quick: boolean;
  /** Everything, however long it takes. */
  all: boolean;
  /** Multiplies windows and job counts. */
  scale: number;
  log(text: string): void;
  table(title: string, header: string[], rows: (string | number)[][]): void;
  /** Each value as a multiple of the base contender's (--base), for the contenders of `values`. */
  ratios(what: string, columns: string[], values: Record<string, (number | undefined)[]>): void;
}

export interface Scenario {
  name: string;
  about: string;
  run(bench: Bench): Promise<unknown>;
}
