/** What coordination by peers is made of: everything is built and wired here. */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, OwnInfo } from "../../core/node.ts";
import type { PeerSet } from "../../core/peer-set.ts";
import { termFields, type LeaderRole, type Term } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import { silentLog, type Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import type { TermStore } from "../../store/store.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Coordination } from "../coordination.ts";
import { Admission } from "./admission.ts";
import { Ballots } from "./ballots.ts";
import { Belonging } from "./belonging.ts";
import { Evidence } from "./evidence.ts";
import { Gossip } from "./gossip.ts";
import { Handler } from "./handler.ts";
import { Heartbeats } from "./heartbeats.ts";
import { Joining } from "./joining.ts";
import { LeaderView } from "./leader-view.ts";
import { LeaderWatch, watchByRequest, type WatchPeer } from "./leader-watch.ts";
import { BullyLock } from "./lock.ts";
import { Members } from "./members.ts";
import { BullyMembership } from "./membership.ts";
import { PeerBook } from "./peer-book.ts";
import { PeerCalls } from "./peer-calls.ts";
import { tcpProbe, type Probe } from "./probe.ts";
import { Roster, type PeerSource } from "./roster.ts";
import { checkBullySettings, DEFAULT_SETTINGS, type BullySettings } from "./settings.ts";
import { Sightings } from "./sightings.ts";
import { Standing } from "./standing.ts";
import { voteFileIn, type VoteFile } from "./vote-file.ts";
import { Voter } from "./voter.ts";

/** The role whose lock the peers are; the others are each node's own. */
export const ROLE: LeaderRole = "scheduler";

export interface BullyOptions {
  readonly identity: NodeIdentity;
  /** Read whenever the node is shown: its load changes, and its url is known only when it listens. */
  readonly info: () => OwnInfo;
  /** Where peers reach this node, if not at `info().url`. */
  readonly address?: () => string | null;
  /** Where the join server of this node is reached, as `host:port`. */
  readonly manager?: () => string | null;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Log;
  /** Signs what it sends; started and stopped by whoever made it. */
  readonly transport: Transport;
  /** Where the votes are kept. */
  readonly dir: string;
  /** Instead of a file in `dir`. */
  readonly file?: VoteFile;
  /** Of this node's own store. */
  readonly terms: TermStore;
  readonly source: PeerSource;
  readonly settings?: Partial<BullySettings>;
  /** The locks of the roles that are local. Started and stopped with this. */
  readonly local: Coordination;
  /** Without it one long request is kept open at the leader. */
  readonly watchPeer?: WatchPeer;
  readonly probe?: Probe;
}

/** How long the first election of a cluster waits for all its voters. Shorter, and those that start a moment later miss it. */
const GATHER_ROUNDS = 2;

/** What the parts need of the service that they make up. */
export interface Life {
  /** Throws while it does not run. */
  readonly usable: () => void;
  readonly stopping: () => AbortSignal;
  /** Asks to be a member again. */
  readonly rejoin: () => void;
}

export type BullyParts = ReturnType<typeof buildParts>;

export function buildParts(options: BullyOptions, life: Life) {
  const settings: BullySettings = { ...DEFAULT_SETTINGS, ...options.settings };
  const { identity, info, clock, random, log = silentLog, transport, source, terms } = options;
  checkBullySettings(settings);
  checkSource(source, identity.name);
  const shared = { identity, clock, log, settings };
  const callMs = settings.heartbeatTimeoutMs;
  const address = (): string | null => (options.address ? options.address() : info().url);
  const manager = (): string | null => options.manager?.() ?? null;

  const evidence: Evidence = new Evidence(() => {
    watch.follow();
    if (view.epoch > 0 && !view.current()) standing.hint();
  });
  const gone = (one: NodeIdentity): boolean => evidence.gone(one);
  const { quorum, leaseMs } = settings;
  const file = options.file ?? voteFileIn(options.dir);
  const onSet = (before: PeerSet | null): void => {
    belonging.changed(before);
    void gossip.tryToVote();
    watch.follow();
    standing.hint();
  };
  const voter: Voter = new Voter({ identity, file, clock, log, quorum, leaseMs, gone, onSet });
  const roster: Roster = new Roster({ identity, source, voter, onOffer: (set) => belonging.offer(set) });
  const standing = new Standing({ clock, patienceMs: 2 * settings.electionTimeoutMs });
  const view: LeaderView = new LeaderView({
    role: ROLE,
    clock,
    gone,
    onVacant: () => standing.hint(),
    onChange: () => {
      if (view.current()) standing.filled();
      watch.follow();
    },
  });
  const book = new PeerBook({ clock, evidence, deadAfterMs: settings.deadAfterMs });
  const calls = new PeerCalls({
    transport,
    roster,
    evidence,
    log,
    onRemoved: (why, peers) => belonging.hearRemoval(why, peers),
    onRefused: (peer) => watch.refused(peer),
  });
  /** This node counts for more than it did: the others hear of it, and trying is worth it. */
  const arrived = (): void => {
    void heartbeats.tellAll(callMs);
    standing.hint();
  };
  const belonging: Belonging = new Belonging({
    ...shared,
    roster,
    voter,
    calls,
    callMs,
    address,
    onJoined: arrived,
    rejoin: life.rejoin,
  });
  const adopt = (set: PeerSet): Promise<void> => belonging.adopt(set);
  const admit = async (term: Term): Promise<boolean> => {
    try {
      const admitted = await terms.admit(term);
      voter.raiseFloor(admitted ? term.epoch : ((await terms.read(ROLE))?.epoch ?? 0));
      return admitted;
    } catch (error) {
      log.warn({ ...termFields(term), err: error }, "the store could not note a leader's term");
      return false;
    }
  };
  const ballots = new Ballots({
    ...shared,
    role: ROLE,
    voter,
    view,
    evidence,
    standing,
    roster,
    calls,
    callMs,
    admit,
  });
  const members = new Members({ ...shared, roster, voter, view, calls });
  const gossip: Gossip = new Gossip({
    ...shared,
    role: ROLE,
    info,
    address,
    manager,
    status: () => membership.status,
    roster,
    voter,
    view,
    book,
    evidence,
    admit,
    adopt,
    greet: (peer) => heartbeats.greet(peer),
    onVoting: arrived,
    onVoter: () => voter.epoch === 0 && standing.hint(),
  });
  const presence = () => gossip.presence();
  const heartbeats: Heartbeats = new Heartbeats({
    clock,
    heartbeatMs: settings.heartbeatMs,
    heartbeatTimeoutMs: settings.heartbeatTimeoutMs,
    roster,
    calls,
    presence,
    sightings: new Sightings({ roster, book, deadAfterMs: settings.deadAfterMs, log }),
    onAnswer: (answer) => gossip.hearAnswer(answer),
  });
  const membership: BullyMembership = new BullyMembership({
    ...shared,
    info,
    roster,
    book,
    calls,
    heartbeats,
    members,
    remove: (name) => admission.remove(name),
  });
  const watch: LeaderWatch = new LeaderWatch({
    ...shared,
    roster,
    book,
    view,
    evidence,
    probe: options.probe ?? tcpProbe(clock),
    watchPeer: options.watchPeer ?? watchByRequest(transport, clock),
    greet: (peer) => heartbeats.greet(peer),
  });
  const lock = new BullyLock({
    ...shared,
    role: ROLE,
    view,
    standing,
    ballots,
    voters: () => roster.names(),
    alive: (peer) => peer === identity.name || book.alive(peer),
    gathering: () =>
      voter.epoch === 0 && !gossip.complete && voter.votingMs < GATHER_ROUNDS * settings.electionTimeoutMs,
    admit,
    usable: life.usable,
  });
  const admission: Admission = new Admission({ ...shared, roster, members, book, calls, watch, presence });
  const handler = new Handler({
    ...shared,
    roster,
    voter,
    ballots,
    standing,
    watch,
    members,
    admission,
    draining: () => membership.status === "draining",
    presence,
    onPresence: (told) => gossip.hearCall(told),
    onStranger: (name, told) => belonging.meetStranger(name, told),
    adopt,
    onWish: (wish) => membership.hear(wish),
    stopping: life.stopping,
  });
  const joining =
    source.kind === "static"
      ? null
      : new Joining({
          ...shared,
          source,
          random,
          roster,
          voter,
          calls,
          address,
          presence,
          adopt,
          onJoined: () => belonging.joined(),
        });
  return {
    settings,
    log,
    voter,
    roster,
    standing,
    view,
    book,
    calls,
    belonging,
    ballots,
    admission,
    gossip,
    heartbeats,
    membership,
    watch,
    lock,
    handler,
    joining,
  };
}

function checkSource(source: PeerSource, name: NodeName): void {
  if (source.kind !== "static") return;
  if (Object.hasOwn(source.nodes, name)) return;
  throw new BatonError(
    "BAD_CONFIG",
    `the list of nodes does not have this node's own name, ${name}; it has ${Object.keys(source.nodes).join(", ") || "none"}`,
    { field: "nodes" },
  );
}
