import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { storeContract } from "./contract.ts";

storeContract("sqlite", ({ clock, dir }) => openSqliteStore({ dir, clock }), { reopens: true });
