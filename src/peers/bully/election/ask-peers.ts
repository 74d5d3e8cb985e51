/** One round of requests to all peers. */

import type { Heard, Round } from "../../../core/leadership/bully.ts";
import type { NodeName } from "../../../core/ids.ts";
import type { Clock } from "../../../platform/clock.ts";

export interface RoundOptions<Answer, Verdict> {
  readonly clock: Clock;
  readonly self: NodeName;
  readonly others: readonly NodeName[];
  /** Our own voter's answer. */
  readonly own: () => Promise<Answer>;
  /**
   * Never rejects; null: no answer. Calls under way when the round is decided go on, because cancelling one would cost the
   * connection.
   */
  readonly ask: (peer: NodeName, deadlineMs: number) => Promise<Heard<Answer> | null>;
  readonly judge: (round: Pick<Round<Answer>, "answers" | "over">) => Verdict | null;
  readonly deadlineMs: number;
  /** A peer that has not answered by then is asked again, so that one lost message does not decide. Requests can be repeated. */
  readonly againMs: number;
}

export interface RoundResult<Answer, Verdict> {
  readonly verdict: Verdict | null;
  readonly answers: ReadonlyMap<NodeName, Heard<Answer>>;
}

/** Asks all peers at the same time and ends as soon as the answers decide, so that silent peers cost nothing. */
export async function askPeers<Answer, Verdict>(
  options: RoundOptions<Answer, Verdict>,
): Promise<RoundResult<Answer, Verdict>> {
  const { clock, self, others, own, ask, judge, deadlineMs, againMs } = options;
  const answers = new Map<NodeName, Heard<Answer>>();
  const decided = Promise.withResolvers<Verdict | null>();
  const over = new AbortController();
  const consider = (): void => {
    if (over.signal.aborted) return;
    const verdict = judge({ answers, over: false });
    if (verdict !== null) decided.resolve(verdict);
  };
  const hear = (peer: NodeName, answer: Heard<Answer>): void => {
    const before = answers.get(peer);
    if (over.signal.aborted || (before !== undefined && before !== "refused")) return;
    answers.set(peer, answer);
    consider();
  };
  const endsAt = clock.monotonic() + deadlineMs;
  const insist = async (peer: NodeName): Promise<void> => {
    for (;;) {
      const leftMs = endsAt - clock.monotonic();
      const heard = answers.get(peer);
      if (over.signal.aborted || leftMs <= 0 || (heard !== undefined && heard !== "refused")) return;
      void ask(peer, leftMs).then((answer) => answer !== null && hear(peer, answer));
      await clock.sleep(againMs, over.signal);
    }
  };
  const callOff = clock.after(deadlineMs, () => decided.resolve(judge({ answers, over: true })));
  own().then(
    (answer) => hear(self, answer),
    () => hear(self, "refused"),
  );
  for (const peer of others) void insist(peer);
  const verdict = await decided.promise;
  over.abort();
  callOff();
  return { verdict, answers: new Map(answers) };
}
