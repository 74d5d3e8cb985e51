import { MemoryStore } from "../../../src/store/memory/store.ts";
import { storeContract } from "./contract.ts";

storeContract(
  "memory",
  async ({ clock }) => {
    const store = new MemoryStore({ clock });
    return store;
  },
  { owns: true },
);
