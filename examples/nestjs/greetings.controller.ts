import { Body, Controller, Get, Inject, Param, Post } from "@nestjs/common";
import type { Baton } from "batonjs";
import { InjectBaton } from "./baton.module.ts";
import { Greetings } from "./greetings.module.ts";

@Controller("greetings")
export class GreetingsController {
  readonly #baton: Baton;
  readonly #greetings: Greetings;

  constructor(@InjectBaton() baton: Baton, @Inject(Greetings) greetings: Greetings) {
    this.#baton = baton;
    this.#greetings = greetings;
  }

  @Post()
  async submit(@Body() body: { name: string }) {
    const { id } = await this.#baton.submit(this.#greetings.greet, body);
    return { id };
  }

  @Get(":id")
  async result(@Param("id") id: string) {
    return { greeting: await this.#baton.job(id).result({ timeout: "10s" }) };
  }
}
