import { conformance } from "../../conformance/suite.ts";

conformance("etcd", { faults: "often" });
