/** The driver, which is installed by those who use the server. All code that needs its values takes them from here. */

import type * as Pg from "pg";
import { loadPackage } from "../../load-package.ts";

export const { Client, DatabaseError, Pool, types } = loadPackage<typeof Pg>("pg");
export type Client = Pg.Client;
export type Pool = Pg.Pool;
