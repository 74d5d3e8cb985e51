import { conformance } from "./suite.ts";

conformance("peers", { faults: "often" });
