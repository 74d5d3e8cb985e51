import { conformance } from "./suite.ts";

conformance("redis", { faults: "often" });
