import { MemoryMembership, openMemoryMembership } from "../../support/lock-membership.ts";
import { MemoryLeaseLock, openMemoryLock } from "../../support/lock-memory.ts";
import { leaseLockContract } from "./contract.ts";
import { MANY, membershipContract } from "./membership.ts";

leaseLockContract("reference", openMemoryLock(MemoryLeaseLock));
membershipContract("reference", openMemoryMembership(MemoryMembership), {
  skip: Object.fromEntries(MANY.map((sentence) => [sentence, "a cluster of one"])),
});
