import { conformance } from "../../conformance/suite.ts";

conformance("postgres", { faults: "often" });
