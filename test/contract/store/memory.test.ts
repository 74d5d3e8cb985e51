import { MemoryStore } from "../../../src/store/memory/memory.ts";
import { storeContract } from "./contract.ts";

storeContract(
  "memory",
  async ({ clock }) => {
    const store = new MemoryStore({ clock });
    return store;
  },
  { owns: true },
);
