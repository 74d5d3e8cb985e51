/** With every change, and so each fault once; the others are run by `npm run conformance`. */

import { conformance } from "./suite.ts";

conformance("postgres", { faults: "once" });
