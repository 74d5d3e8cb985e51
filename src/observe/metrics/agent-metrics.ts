/** Metrics of the jobs that agents lease from this node and return to it, while it leads. */

import type { AgentSink } from "../../controller/controller.ts";
import type { Instruments, Reading } from "./instruments.ts";

type How = Parameters<AgentSink["result"]>[0];

export class AgentMetrics implements AgentSink {
  readonly #results: Record<How, number> = {
    completed: 0,
    retry: 0,
    failed: 0,
    cancelled: 0,
    interrupted: 0,
    released: 0,
    repeated: 0,
    refused: 0,
  };
  #leased = 0;

  constructor(instruments: Instruments) {
    instruments.counter(
      { name: "baton_agent_leased_jobs_total", help: "Jobs that agents have leased from this node." },
      () => this.#leased,
    );
    instruments.counter(
      {
        name: "baton_agent_results_total",
        help: "Results of agents. repeated: said before; refused: the job has moved on; the others as in baton_jobs_finished_total.",
      },
      () => Object.entries(this.#results).map(([outcome, count]): Reading => [{ outcome }, count]),
    );
  }

  leased(jobs: number): void {
    this.#leased += jobs;
  }

  result(how: How): void {
    this.#results[how]++;
  }
}
