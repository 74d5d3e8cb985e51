/**
 * Coordination where all nodes register in one list on a server: the part that all such backends share. A backend
 * supplies the session with the server, the list and the lock of a role.
 */

import type { NodeIdentity, OwnInfo } from "../core/node.ts";
import type { LeaderRole } from "../core/leadership/term.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { Lifecycle, type Service } from "../platform/service.ts";
import type { Coordination, LeaseLock } from "./coordination.ts";
import type { MembershipSettings, RegisteredMembership, Registry } from "./registered-membership.ts";

export interface RegisteredCoordinationOptions {
  readonly identity: NodeIdentity;
  /** Read with every heartbeat and whenever the node is shown. */
  readonly info: () => OwnInfo;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Log;
  readonly settings?: Partial<MembershipSettings>;
  /** Takes the place of the clock by which leases are counted: for tests, which move it by hand. */
  readonly time?: Clock;
}

export interface RegisteredLock extends LeaseLock {
  hint(): void;
  stop(): Promise<void>;
}

const DEFAULTS: MembershipSettings = { heartbeatMs: 1_000, deadAfterMs: 5_000, forgetAfterMs: 3_600_000 };

/** Shorter, and a busy server is taken for a dead one. */
const COMMAND_MS_MIN = 1_000;
const COMMAND_MS_MAX = 5_000;

export abstract class RegisteredCoordination<List extends Registry, Lock extends RegisteredLock>
  extends Lifecycle
  implements Coordination
{
  abstract readonly kind: string;
  abstract readonly membership: RegisteredMembership<List>;
  protected readonly settings: MembershipSettings;
  /** Two heartbeats that are not answered mean a new connection, or another server. */
  protected readonly commandMs: number;
  protected readonly locks = new Map<LeaderRole, Lock>();

  constructor({ settings }: RegisteredCoordinationOptions) {
    super();
    this.settings = { ...DEFAULTS, ...settings };
    this.commandMs = Math.min(Math.max(2 * this.settings.heartbeatMs, COMMAND_MS_MIN), COMMAND_MS_MAX);
  }

  protected abstract readonly control: Pick<Service, "start" | "stop">;
  protected abstract openLock(role: LeaderRole): Lock;
  abstract notes(): readonly string[];

  lock(role: LeaderRole): LeaseLock {
    let lock = this.locks.get(role);
    if (!lock) {
      lock = this.openLock(role);
      this.locks.set(role, lock);
    }
    return lock;
  }

  protected async onStart(): Promise<void> {
    await this.control.start();
    try {
      await this.membership.start();
    } catch (error) {
      await this.control.stop();
      throw error;
    }
  }

  protected async onStop(): Promise<void> {
    await Promise.all([...this.locks.values()].map((lock) => lock.stop()));
    await this.membership.stop();
    await this.control.stop();
  }
}
