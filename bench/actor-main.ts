/** The other end of `actor.ts`. */

type Api = Record<string, (...args: never[]) => unknown>;
interface Call {
  readonly id: number;
  readonly name: string;
  readonly args: never[];
}

let api: Api = {};

async function answer({ id, name, args }: Call): Promise<void> {
  try {
    if (name === "open") {
      const [url, options] = args as unknown as [string, object];
      const module = (await import(url)) as { open(options: object): Promise<Api> };
      api = await module.open(options);
      process.send!({ id });
    } else if (name === "close") {
      await api["close"]?.();
      process.exit(0);
    } else process.send!({ id, value: await api[name]!(...args) });
  } catch (error) {
    process.send!({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

process.on("message", (call: Call) => void answer(call));
process.on("disconnect", () => process.exit(0));
