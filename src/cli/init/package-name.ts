import { CliFailure, EXIT } from "../failure.ts";

/** What npm accepts for a new package, except for a few unusual first characters. */
const NAME = /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/;
const LENGTH_MAX = 214;
const USED_BY_NPM = ["node_modules", "favicon.ico"];

/** `dependencies`: a project named like one of them could not tell the two apart. */
export function checkPackageName(name: string, dependencies: readonly string[]): void {
  const refuse = (why: string): never => {
    const message = `${JSON.stringify(name)} cannot be the name of the package: ${why}`;
    throw new CliFailure(EXIT.usage, message, "give another name, such as --name my-jobs");
  };
  if (dependencies.includes(name)) refuse("the project depends on a package of that name");
  if (USED_BY_NPM.includes(name)) refuse("npm uses that name itself");
  if (name.length > LENGTH_MAX) refuse(`npm accepts at most ${LENGTH_MAX} characters`);
  if (!NAME.test(name))
    refuse("npm accepts lower-case letters, digits, dashes, dots and underscores, after a letter or a digit");
}
