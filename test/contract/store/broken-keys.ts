import { keyConflict } from "../../../src/core/jobs/idempotency.ts";
import { isFinal, type JobStatus } from "../../../src/core/jobs/job.ts";
import type { JobStore, NewJob, Submitted } from "../../../src/store/store.ts";
import { type BrokenStores, IN_HISTORIES, inJobs, submits, type Replace } from "./broken-row.ts";

type Submit = JobStore["submit"];

function submitting(as: (submit: Submit) => Submit): Replace {
  return inJobs(({ jobs }) => ({ submit: as((...args) => jobs.submit(...args)) }));
}

/** A job with such an answer is stored without its key. */
function forgetsKeyOf(status: (status: JobStatus) => boolean): Replace {
  return submitting((submit) => async (batch, author) => {
    const answers = await submit(batch, author);
    const anew = async (answer: Submitted, at: number): Promise<Submitted> => {
      if (!answer.existed || !status(answer.status)) return answer;
      return (await submit([{ ...batch[at]!, idempotencyKey: null }], author))[0]!;
    };
    return Promise.all(answers.map(anew));
  });
}

/** About idempotency keys. */
export const BROKEN_KEYS: BrokenStores = {
  "forgets idempotency keys": [IN_HISTORIES, submits((job) => ({ ...job, idempotencyKey: null }))],
  "forgets the idempotency key of a finished job": [IN_HISTORIES, forgetsKeyOf(isFinal)],
  "lets the key of a cancelled job be used again": [
    "a cancelled job keeps its key: a repeated request does not undo the cancel",
    forgetsKeyOf((status) => status === "cancelled"),
  ],
  "takes the key of one task for that of another": [
    "a key belongs to one task: that of another task makes a job of its own",
    submitting((submit) => {
      const firsts = new Map<string, Submitted>();
      return async (batch, author) => {
        const { idempotencyKey: key } = batch[0]!;
        const first = key === null ? undefined : firsts.get(key);
        if (first) return [{ ...first, existed: true }];
        const answers = await submit(batch, author);
        if (key !== null) firsts.set(key, answers[0]!);
        return answers;
      };
    }),
  ],
  "does not compare payloads": [
    "the same key with another payload is refused, with the first job's id, and stores nothing",
    submitting((submit) => async (batch, author) => {
      const answers = await submit(batch, author, false, undefined, true);
      return answers.map(({ id, status, existed }) => ({ id, status, existed }));
    }),
  ],
  "compares payloads letter by letter": [
    "the same payload may be written in another way",
    submitting((submit) => {
      const firsts = new Map<string, NewJob>();
      return async (batch, author) => {
        const [job] = batch;
        const first = firsts.get(job!.idempotencyKey!);
        if (first && first.payload !== job!.payload) throw keyConflict(batch, 0, first.id);
        firsts.set(job!.idempotencyKey!, job!);
        return submit(batch, author);
      };
    }),
  ],
  "stores the rest of a list with a conflict": [
    "a list with a conflict stores nothing at all",
    submitting((submit) => async (batch, author) => {
      const answers = await submit(batch, author, false, undefined, true);
      const at = answers.findIndex(({ conflict }) => conflict);
      if (at >= 0) throw keyConflict(batch, at, answers[at]!.id);
      return answers;
    }),
  ],
  "refuses everybody for one caller's conflict": [
    "a conflict of one caller is no concern of another whose job is stored with it",
    submitting((submit) => (batch, author) => submit(batch, author)),
  ],
  "keeps the key of a failed job": [
    "of many that use the key of a failed job at the same time, one makes a job",
    submits((job) => ({ ...job, keyReuse: "never" })),
  ],
  "uses a key again that is never to be used again": [
    "a key that is never to be used again names the failed job",
    submits((job) => ({ ...job, keyReuse: "after_failure" })),
  ],
  "retries a job whose key has made another one": [
    "a failed job can be retried, unless its key has made another job since",
    inJobs(({ jobs }) => ({
      async retry(id) {
        const answer = await jobs.retry(id);
        return answer === "superseded" ? "retried" : answer;
      },
    })),
  ],
};
