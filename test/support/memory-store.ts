/**
 * A store in memory for tests and the simulation: SQLite in memory, with push dispatch and ownership on top, which
 * nodes of one process share. The same calls under the same clock always give the same answers.
 */

import type { JobId, NodeName } from "../../src/core/ids.ts";
import { isFinal, type Job } from "../../src/core/jobs/job.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { IN_MEMORY } from "../../src/platform/drivers/sqlite/sqlite-file.ts";
import type {
  Accepted,
  AcceptRequest,
  AssignmentId,
  CountedOwnership,
  Dispatched,
  DispatchRequest,
  Held,
  Orphan,
  OwnedBatch,
  Ownership,
  OwnershipStore,
  Released,
  Undispatched,
} from "../../src/store/ownership.ts";
import { endsBy, type StoreCache } from "../../src/store/sqlite/jobs/store-cache.ts";
import { Read } from "../../src/store/sqlite/jobs/read.ts";
import { openCache, sqliteStore, type SqliteStore } from "../../src/store/sqlite/store.ts";
import type { JobStore, Recorded, Run, RunBatch, Verdict } from "../../src/store/store.ts";
import { STATUS, statusName } from "../../src/store/job-row.ts";

export type MemoryStore = SqliteStore & { readonly ownership: MemoryOwnership };

export function memoryStore({ clock }: { readonly clock: Clock }): MemoryStore {
  const cache = openCache(IN_MEMORY, clock);
  const store = sqliteStore(cache);
  const ownership = new MemoryOwnership(store.jobs, cache);
  const shown = (job: Job): Job => ownership.shown(job);
  const jobs: JobStore = {
    ...store.jobs,
    get: async (id) => {
      const job = await store.jobs.get(id);
      return job && shown(job);
    },
    list: (async (query, brief) => {
      if (brief) return store.jobs.list(query, brief);
      const page = await store.jobs.list(query);
      return { ...page, jobs: page.jobs.map(shown) };
    }) as JobStore["list"],
    runs: async (id) => ({
      past: (await store.jobs.runs(id)).past,
      assignments: ownership.assignmentsOf(id),
    }),
  };
  return { ...store, jobs, ownership };
}

interface Assignment {
  readonly id: AssignmentId;
  readonly createdAt: number;
  readonly jobs: Set<JobId>;
  owner: NodeIdentity | null;
  last: NodeName | null;
  ownerEpoch: number;
  state: Ownership["state"];
  unownedSince: number;
  offeredAt: number | null;
}

/** A job that was dispatched. It is in its assignment while it waits under this epoch, or runs under the next one. */
interface Mark {
  readonly assignment: AssignmentId;
  readonly jobEpoch: number;
  accepted: boolean;
}

class MemoryOwnership implements OwnershipStore {
  readonly #jobs: JobStore;
  readonly #cache: StoreCache;
  readonly #read: Read;
  readonly #assignments = new Map<AssignmentId, Assignment>();
  readonly #marks = new Map<JobId, Mark>();
  /** Who owned a job when it ended. */
  readonly #ended = new Map<JobId, Pick<Job, "owner" | "ownerEpoch" | "jobEpoch">>();
  readonly #sql;
  #made = 0;

  constructor(jobs: JobStore, cache: StoreCache) {
    this.#jobs = jobs;
    this.#cache = cache;
    this.#read = new Read(cache);
    const { file } = cache;
    this.#sql = {
      due: file.prepare(
        `SELECT j.id FROM job j LEFT JOIN live l ON l.seq = j.seq LEFT JOIN done d ON d.seq = j.seq
         WHERE d.seq IS NULL AND coalesce(l.status, 1) < 2 AND coalesce(l.run_at, j.created_at) <= ?
         ORDER BY j.priority DESC, coalesce(l.run_at, j.created_at), j.seq`,
      ),
      status: file.prepare("SELECT status FROM live WHERE seq = ?"),
      unfresh: file.prepare("UPDATE job SET fresh = 0 WHERE seq = ?"),
      addLive: file.prepare(
        `INSERT INTO live (seq, status, priority, run_at, job_epoch, attempts, failures, interruptions, crashes, updated_at, author)
         SELECT seq, 1, priority, created_at, 0, 0, 0, 0, 0, created_at, author FROM job WHERE seq = ?`,
      ),
      start: file.prepare(
        `UPDATE live SET status = 2, lane = NULL, job_epoch = job_epoch + 1, attempts = attempts + 1, updated_at = ?1,
         started_at = ?1, worker = ?2, lease = ?3, author = ?4, progress = NULL, progress_message = NULL WHERE seq = ?5`,
      ),
      suspect: file.prepare("SELECT suspect FROM live WHERE seq = ?"),
      nextDue: file.prepare("SELECT min(run_at) AS at FROM live WHERE status = 0 AND run_at > ?"),
    };
  }

  async dispatch(request: DispatchRequest, fence: Term): Promise<Dispatched> {
    await this.#check(fence);
    const now = this.#cache.clock.now();
    const parts: { assignment: Assignment; jobs: Job[] }[] = [];
    const part = () => parts[parts.push({ assignment: this.#make(now), jobs: [] }) - 1]!;
    let open: (typeof parts)[number] | null = null;
    let left = request.limit;
    let suspect = request.suspect;
    for (const { id } of this.#sql.due.all(now) as { id: JobId }[]) {
      const job = this.#read.get(id)!;
      const { queue, task } = job;
      if (left <= 0) break;
      if (!request.tasks.has(task) || request.exceptQueues.has(queue) || this.#cache.paused.has(queue))
        continue;
      if ((request.queues && !request.queues.has(queue)) || this.#markOf(job)) continue;
      const isOne = this.#sql.suspect.get(this.#cache.seqOf(id))?.["suspect"] === 1;
      if (isOne && !suspect) continue;
      if (isOne) suspect = false;
      else if (!open || open.jobs.length >= request.size) open = part();
      const into = isOne ? part() : open!;
      into.jobs.push(job);
      into.assignment.jobs.add(id);
      this.#marks.set(id, { assignment: into.assignment.id, jobEpoch: job.jobEpoch, accepted: false });
      left--;
    }
    const next = this.#sql.nextDue.get(now)!["at"] as number | null;
    return {
      assignments: parts.map(({ assignment, jobs }) => ({
        id: assignment.id,
        jobs: jobs.map((job) => ({ ...asDispatched(job), ref: this.#cache.seqOf(job.id)! })),
      })),
      nextDueInMs: next === null ? null : next - now,
    };
  }

  accept(request: AcceptRequest): Promise<Accepted> {
    const cache = this.#cache;
    return cache.file.write(() => {
      const now = cache.clock.now();
      const held = cache.mayHold(request.lease, request.opens);
      const accepted = request.runs.map(({ id, jobEpoch, assignment }) => {
        const job = held ? this.#read.get(id) : null;
        const mark = job && this.#markOf(job);
        if (!mark || mark.accepted || mark.assignment !== assignment || mark.jobEpoch + 1 !== jobEpoch)
          return false;
        mark.accepted = true;
        this.#start(job, request, now);
        return true;
      });
      if (held) cache.holdLease(request.lease, request.leaseMs);
      return { held, accepted };
    });
  }

  async undispatch(olderThanMs: number, fence: Term): Promise<Undispatched> {
    await this.#check(fence);
    const now = this.#cache.clock.now();
    const old = this.#waiting().filter((job) => {
      const assignment = this.#assignments.get(this.#marks.get(job.id)!.assignment);
      return !assignment || assignment.createdAt <= now - olderThanMs;
    });
    for (const { id } of old) this.#marks.delete(id);
    return { freed: byQueue(old), outstanding: this.outstanding() };
  }

  /** For tests, without a term. */
  outstanding(): ReadonlyMap<string, number> {
    return byQueue(this.#waiting());
  }

  async own(
    claims: readonly Held[],
    { name, incarnation }: NodeIdentity,
  ): Promise<readonly (number | null)[]> {
    return claims.map(({ assignment: id, ownerEpoch }) => {
      const assignment = this.#assignments.get(id);
      if (assignment?.ownerEpoch !== ownerEpoch) return null;
      Object.assign(assignment, {
        owner: { name, incarnation },
        last: name,
        state: "owned",
        offeredAt: null,
      });
      return ++assignment.ownerEpoch;
    });
  }

  /** The call of the store runs at once, before this yields: no handoff comes in between. */
  async record(events: readonly OwnedBatch[], owner: NodeIdentity): Promise<readonly (Recorded | null)[]> {
    const ours = events.map((event) => this.#held(event, owner) !== null);
    const mine = events.map((event, at): RunBatch => {
      const inIt = ({ run }: { readonly run: Run }): boolean =>
        ours[at]! && !this.#runsElsewhere(run, event.assignment);
      return { reports: event.reports.filter(inIt), settlements: event.settlements.filter(inIt) };
    });
    const { reported, settled } = await this.#jobs.record({
      reports: mine.flatMap(({ reports }) => reports),
      settlements: mine.flatMap(({ settlements }) => settlements),
    });
    const verdicts = { reported: [...reported], settled: [...settled] };
    return events.map((event, at) => {
      if (!ours[at]) return null;
      for (const { run } of mine[at]!.settlements) {
        const job = this.#read.get(run.id);
        if (job && isFinal(job.status) && !this.#ended.has(job.id))
          this.#ended.set(job.id, {
            owner: owner.name,
            ownerEpoch: event.ownerEpoch,
            jobEpoch: job.jobEpoch,
          });
      }
      const verdict = (all: readonly unknown[], from: Verdict[]) => (one: { run: Run }) =>
        all.includes(one) ? from.shift()! : "stale";
      return {
        reported: event.reports.map(verdict(mine[at]!.reports, verdicts.reported)),
        settled: event.settlements.map(verdict(mine[at]!.settlements, verdicts.settled)),
      };
    });
  }

  async release(held: readonly Held[], owner: NodeIdentity, state: Released): Promise<void> {
    for (const one of held) {
      const assignment = this.#held(one, owner);
      if (!assignment) continue;
      if (state === "finished") this.#assignments.delete(one.assignment);
      else this.#giveUp(assignment, state);
    }
  }

  async read(ids: readonly AssignmentId[], counted = false): Promise<readonly (CountedOwnership | null)[]> {
    return ids.map((id) => {
      const found = this.#assignments.get(id);
      if (!found) return null;
      const { owner, ownerEpoch, state } = found;
      const ownership = { assignment: id, ownerEpoch, owner: owner && { ...owner }, state };
      const count = counted ? { unfinished: this.#unfinished(found) } : {};
      return { ...ownership, ...count } as CountedOwnership;
    });
  }

  async owners(): Promise<readonly NodeIdentity[]> {
    const owners = [...this.#assignments.values()].flatMap(({ owner }) => owner ?? []);
    return [...new Map(owners.map((owner) => [owner.incarnation, owner])).values()];
  }

  async disown(incarnations: readonly string[], fence: Term): Promise<number> {
    await this.#check(fence);
    const left = [...this.#assignments.values()].filter(({ owner }) =>
      incarnations.includes(owner?.incarnation ?? ""),
    );
    for (const assignment of left) this.#giveUp(assignment, "orphan_pending");
    return left.length;
  }

  async orphans(
    { unownedForMs, offeredBeforeMs, limit }: Parameters<OwnershipStore["orphans"]>[0],
    fence: Term,
  ): Promise<readonly Orphan[]> {
    await this.#check(fence);
    const now = this.#cache.clock.now();
    const found: Orphan[] = [];
    for (const assignment of this.#assignments.values()) {
      if (found.length >= limit) break;
      const { id, last, ownerEpoch, state, unownedSince, offeredAt } = assignment;
      if (state === "owned" || (state === "unowned" && unownedSince > now - unownedForMs)) continue;
      if (offeredAt !== null && offeredAt > now - offeredBeforeMs) continue;
      if (this.#unfinished(assignment) === 0) this.#assignments.delete(id);
      else {
        assignment.offeredAt = now;
        found.push({ assignment: id, ownerEpoch, last });
      }
    }
    return found;
  }

  /** A job in an assignment belongs to the owner of that. */
  shown(job: Job): Job {
    const ended = this.#ended.get(job.id);
    if (ended && isFinal(job.status) && ended.jobEpoch === job.jobEpoch) return { ...job, ...ended };
    const assignment = this.#assignments.get(this.#markOf(job)?.assignment ?? 0);
    if (!assignment?.owner) return job;
    return { ...job, owner: assignment.owner.name, ownerEpoch: assignment.ownerEpoch };
  }

  assignmentsOf(id: JobId): AssignmentId[] {
    const job = this.#read.get(id);
    const mark = job && this.#markOf(job);
    return mark ? [mark.assignment] : [];
  }

  #markOf(job: Job): Mark | null {
    const mark = this.#marks.get(job.id);
    if (!mark) return null;
    const waits = job.status === "queued" && !mark.accepted && job.jobEpoch === mark.jobEpoch;
    const runs = job.status === "processing" && mark.accepted && job.jobEpoch === mark.jobEpoch + 1;
    return waits || runs ? mark : null;
  }

  #runsElsewhere({ id, jobEpoch }: Run, assignment: AssignmentId): boolean {
    const job = this.#read.get(id);
    if (job?.status !== "processing" || job.jobEpoch !== jobEpoch) return false;
    return this.#markOf(job)?.assignment !== assignment;
  }

  #waiting(): Job[] {
    const jobs = [...this.#marks.keys()].flatMap((id) => this.#read.get(id) ?? []);
    return jobs.filter((job) => this.#markOf(job)?.accepted === false);
  }

  #unfinished(assignment: Assignment | undefined): number {
    const jobs = [...(assignment?.jobs ?? [])].flatMap((id) => this.#read.get(id) ?? []);
    return jobs.filter((job) => this.#markOf(job)?.assignment === assignment!.id).length;
  }

  #start(job: Job, { lease, leaseMs, worker, author }: AcceptRequest, now: number): void {
    const cache = this.#cache;
    const seq = cache.seqOf(job.id)!;
    const stored = this.#sql.status.get(seq)?.["status"] as number | undefined;
    if (stored === undefined) {
      this.#sql.unfresh.run(seq);
      this.#sql.addLive.run(seq);
    }
    const leaseId = cache.holdLease(lease, leaseMs);
    this.#sql.start.run(now, cache.workerId(worker), leaseId, cache.authorId(author), seq);
    cache.count(job.queue, statusName(stored ?? STATUS.queued), "processing");
    const { queue, timeoutMs } = job;
    cache.running.set(seq, { queue, lease, jobEpoch: job.jobEpoch + 1, endsBy: endsBy(now, timeoutMs) });
  }

  #make(now: number): Assignment {
    const id = ++this.#made;
    const nobody = { owner: null, last: null, ownerEpoch: 0, state: "unowned", offeredAt: null } as const;
    const assignment: Assignment = { id, createdAt: now, unownedSince: now, jobs: new Set(), ...nobody };
    this.#assignments.set(id, assignment);
    return assignment;
  }

  #giveUp(assignment: Assignment, state: "unowned" | "orphan_pending"): void {
    Object.assign(assignment, { owner: null, state, unownedSince: this.#cache.clock.now(), offeredAt: null });
  }

  #held({ assignment: id, ownerEpoch }: Held, { incarnation }: NodeIdentity): Assignment | null {
    const assignment = this.#assignments.get(id);
    const ours = assignment?.owner?.incarnation === incarnation && assignment.ownerEpoch === ownerEpoch;
    return ours ? assignment : null;
  }

  /** Only the newest term may pass. */
  async #check(fence: Term): Promise<void> {
    await this.#jobs.record({ reports: [], settlements: [] }, fence);
  }
}

function asDispatched(job: Job): Dispatched["assignments"][number]["jobs"][number] {
  const { id, task, queue, priority, payload, failures, interruptions, crashes } = job;
  const { maxAttempts, timeoutMs, createdAt, runAt, trace } = job;
  const run = { id, jobEpoch: job.jobEpoch + 1, attempts: job.attempts + 1 };
  const counts = { failures, interruptions, crashes, maxAttempts, timeoutMs };
  return { ...run, task, queue, priority, payload, ...counts, createdAt, runAt, trace };
}

function byQueue(jobs: readonly Job[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { queue } of jobs) counts.set(queue, (counts.get(queue) ?? 0) + 1);
  return counts;
}
