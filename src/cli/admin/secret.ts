/** `baton secret`: the secret with which the nodes of a cluster sign their calls. */

import { resolve } from "node:path";
import type { Command } from "commander";
import { writeSecretFile } from "../../config/secrets/secret-file.ts";
import { newSecret } from "../../platform/random.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

export function addSecretCommands(program: Command, terminal: Terminal): void {
  const secret = program.command("secret").description("make a secret for a cluster of peers");

  secret
    .command("create")
    .description("print a new secret, or write it into a file that only its owner can read")
    .option("--file <path>", "write it there; what is there already is left alone")
    .action(({ file }: { readonly file?: string }) => {
      if (file === undefined) terminal.out.write(`${newSecret()}\n`);
      else write(terminal, file);
    });
}

function write(terminal: Terminal, file: string): void {
  try {
    writeSecretFile(resolve(terminal.cwd, file), newSecret());
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") {
      const hint =
        "give another --file; to change a secret, nodes take two: the new one first, then the old one";
      throw new CliFailure(EXIT.failure, `${file} is there already, and its secret may be in use`, hint);
    }
    const why = code === "ENOENT" ? "there is no such directory" : String(code);
    throw new CliFailure(EXIT.failure, `${file} cannot be written: ${why}`);
  }
  say(terminal, `${file} has a new secret; copy it to every node and set BATON_SECRET_FILE to its path`);
}
