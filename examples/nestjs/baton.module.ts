/** Baton as a module of NestJS: the node starts and stops with the application, and is injected with `@InjectBaton()`. */

import {
  type ArgumentsHost,
  Catch,
  type DynamicModule,
  type ExceptionFilter,
  type FactoryProvider,
  Inject,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from "@nestjs/common";
import { APP_FILTER } from "@nestjs/core";
import { type Baton, BatonError, createNode, type NodeOptions } from "batonjs";
import type { Response } from "express";

export const BATON = Symbol("baton");
export const InjectBaton = () => Inject(BATON);

/** What Baton refuses, as a payload that does not fit, is answered with the status of its error. */
@Catch(BatonError)
class BatonErrorFilter implements ExceptionFilter {
  catch({ code, status, message }: BatonError, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<Response>();
    response.status(status ?? 500).json({ statusCode: status, error: code, message });
  }
}

/** Options that are made of other providers, such as tasks that need them. */
type LaterOptions = Pick<FactoryProvider<NodeOptions>, "inject" | "useFactory"> &
  Pick<ModuleMetadata, "imports">;

@Module({})
export class BatonModule implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #baton: Baton;

  constructor(@InjectBaton() baton: Baton) {
    this.#baton = baton;
  }

  static forRoot(options: NodeOptions): DynamicModule {
    return BatonModule.forRootAsync({ useFactory: () => options });
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: LaterOptions): DynamicModule {
    const node: FactoryProvider<Baton> = {
      provide: BATON,
      inject,
      useFactory: async (...given) => createNode(await useFactory(...given)),
    };
    const filter = { provide: APP_FILTER, useClass: BatonErrorFilter };
    return { module: BatonModule, global: true, imports, providers: [node, filter], exports: [BATON] };
  }

  /** When all providers are there that its tasks may need. */
  onApplicationBootstrap(): Promise<void> {
    return this.#baton.start();
  }

  /** Before they go: running jobs come to their end. */
  onModuleDestroy(): Promise<void> {
    return this.#baton.stop();
  }
}
