/** The driver, which is installed by those who use the server. All code that needs its values takes them from here. */

import type * as Redis from "@redis/client";
import { loadPackage } from "../../load-package.ts";

export const { createClient, ErrorReply } = loadPackage<typeof Redis>("@redis/client");
