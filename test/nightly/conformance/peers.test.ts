import { conformance } from "../../conformance/suite.ts";

conformance("peers", { faults: "often" });
