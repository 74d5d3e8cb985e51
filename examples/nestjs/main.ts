import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { Baton } from "batonjs";
import { dashboard } from "batonjs/express";
import { BATON, BatonModule } from "./baton.module.ts";
import { GreetingsController } from "./greetings.controller.ts";
import { Greetings, GreetingsModule } from "./greetings.module.ts";

@Module({
  imports: [
    GreetingsModule,
    BatonModule.forRootAsync({
      imports: [GreetingsModule],
      inject: [Greetings],
      useFactory: ({ greet }: Greetings) => ({ store: process.env["STORE"] ?? "memory", tasks: [greet] }),
    }),
  ],
  controllers: [GreetingsController],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
app.enableShutdownHooks([], { useProcessExit: true });
// Only callers on this machine: give it `authenticate` for others.
app.use("/jobs", dashboard(app.get<Baton>(BATON)));
await app.listen(Number(process.env["PORT"] ?? 3_000), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);
