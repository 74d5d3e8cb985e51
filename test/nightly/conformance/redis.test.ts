import { conformance } from "../../conformance/suite.ts";

conformance("redis", { faults: "often" });
