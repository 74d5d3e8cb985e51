import { MemoryLeaseLock, openMemoryLock } from "../../support/lock-memory.ts";
import { leaseLockContract } from "./contract.ts";

leaseLockContract("reference", openMemoryLock(MemoryLeaseLock));
