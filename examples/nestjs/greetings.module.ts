import { Injectable, Module } from "@nestjs/common";
import { defineTask } from "batonjs/task";
import { z } from "zod";

/** A provider with a task. The handler may use whatever is injected here. */
@Injectable()
export class Greetings {
  readonly greet = defineTask({
    name: "greet",
    schema: z.object({ name: z.string().min(1) }),
    run: ({ name }) => this.textFor(name),
  });

  textFor(name: string): string {
    return `Hello ${name}`;
  }
}

@Module({ providers: [Greetings], exports: [Greetings] })
export class GreetingsModule {}
