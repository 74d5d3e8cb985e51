import { after } from "node:test";
import { EtcdServer } from "../../support/etcd-server.ts";
import { openEtcdLock } from "../../support/lock-etcd.ts";
import { leaseLockContract } from "./contract.ts";

const server = await EtcdServer.start();
after(() => server.stop());

/** Each is fifty candidates, or 25 calls with a write to the disk for most of them: some seconds in all. */
const ROUNDS = 30;

leaseLockContract("etcd", () => openEtcdLock(server, ROUNDS));
