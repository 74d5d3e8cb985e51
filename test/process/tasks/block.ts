interface Context {
  readonly attempt: number;
  readonly job: { readonly jobEpoch: number };
}

/** Keeps the event loop of its node to itself, in its first run. */
export default function block({ ms }: { readonly ms: number }, { attempt, job }: Context): unknown {
  const until = attempt === 1 ? performance.now() + ms : 0;
  while (performance.now() < until);
  return { epoch: job.jobEpoch };
}
