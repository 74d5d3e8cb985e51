import { conformance } from "./suite.ts";

conformance("postgres", { faults: "often" });
