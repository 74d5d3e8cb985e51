import { memoryStore } from "../../support/memory-store.ts";
import { fencedContract } from "./fenced.ts";

fencedContract("sqlite", async ({ clock }) => memoryStore({ clock }));
