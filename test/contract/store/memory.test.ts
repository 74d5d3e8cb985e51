import { openMemoryStore } from "../../../src/store/memory/memory.ts";
import { storeContract } from "./contract.ts";

storeContract(
  "memory",
  async ({ clock }) => {
    const store = openMemoryStore({ clock });
    await store.start();
    return store;
  },
  { owns: true },
);
