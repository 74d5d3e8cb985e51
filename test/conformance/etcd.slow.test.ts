import { conformance } from "./suite.ts";

conformance("etcd", { faults: "often" });
