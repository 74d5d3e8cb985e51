/**
 * As much of a transaction pooler as it takes to be one: clients get a session of the server for each transaction, and
 * another one for the next. Speaks the protocol only where a transaction begins and ends.
 */

import { connect, createServer, type Server, type Socket } from "node:net";

export interface PoolerOptions {
  readonly sessions: number;
  /** Which of the free ones comes next: the one used last, or the one used longest ago. */
  readonly order: "last used" | "round";
}

const SYNC = 0x53;
const SIMPLE_QUERY = 0x51;
const TERMINATE = 0x58;
const READY = 0x5a;
const IDLE = 0x49;
const PROTOCOL = 196_608;
const GREETING = Buffer.concat([
  Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]), // you are who you say
  Buffer.from([0x4b, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1]), // a key that nobody needs
  Buffer.from([READY, 0, 0, 0, 5, IDLE]),
]);

interface Session {
  readonly socket: Socket;
  readonly messages: AsyncIterator<Buffer>;
}

export class TransactionPooler implements AsyncDisposable {
  readonly #target: URL;
  readonly #order: PoolerOptions["order"];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #free: Session[] = [];
  readonly #waiting: ((session: Session) => void)[] = [];

  private constructor(target: URL, { order }: PoolerOptions) {
    this.#target = target;
    this.#order = order;
    this.#server = createServer((socket) => {
      this.#track(socket);
      // A client that goes away in the middle is nothing special.
      this.#serve(socket).catch(() => socket.destroy());
    });
  }

  static async start(target: string, options: PoolerOptions): Promise<TransactionPooler> {
    const pooler = new TransactionPooler(new URL(target), options);
    for (let n = 0; n < options.sessions; n++) pooler.#free.push(await pooler.#open());
    await new Promise<void>((resolve) => pooler.#server.listen(0, "127.0.0.1", resolve));
    return pooler;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.port = String((this.#server.address() as { port: number }).port);
    return url.href;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(client: Socket): Promise<void> {
    const messages = messagesOf(client, true);
    await messages.next(); // who it is, and where to: we know
    client.write(GREETING);
    let session: Session | null = null;
    let batch: Buffer[] = [];
    try {
      for await (const message of messages) {
        if (message[0] === TERMINATE) break;
        batch.push(message);
        if (message[0] !== SYNC && message[0] !== SIMPLE_QUERY) continue;
        session ??= await this.#take();
        session.socket.write(Buffer.concat(batch));
        batch = [];
        const state = await forward(session, client);
        if (state !== IDLE) continue;
        this.#giveBack(session);
        session = null;
      }
      client.end();
    } finally {
      if (session) await this.#replace(session);
    }
  }

  /** Left in the middle of a transaction. */
  async #replace({ socket }: Session): Promise<void> {
    socket.destroy();
    if (this.#server.listening) this.#giveBack(await this.#open());
  }

  #take(): Promise<Session> {
    const session = this.#order === "round" ? this.#free.shift() : this.#free.pop();
    if (session) return Promise.resolve(session);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #giveBack(session: Session): void {
    const next = this.#waiting.shift();
    if (next) next(session);
    else this.#free.push(session);
  }

  async #open(): Promise<Session> {
    const { hostname, port, username, pathname } = this.#target;
    const socket = connect(Number(port), hostname);
    this.#track(socket);
    const text = `user\0${username}\0database\0${pathname.slice(1)}\0\0`;
    const packet = Buffer.alloc(8 + text.length);
    packet.writeInt32BE(packet.length, 0);
    packet.writeInt32BE(PROTOCOL, 4);
    packet.write(text, 8);
    socket.write(packet);
    const session = { socket, messages: messagesOf(socket, false) };
    for (;;) {
      const { value, done } = await session.messages.next();
      if (done) throw new Error("the server closed the connection");
      if (value[0] === READY) return session;
    }
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay();
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
  }
}

/** Everything up to the end of a batch; the state of the transaction after it. */
async function forward({ messages }: Session, client: Socket): Promise<number> {
  for (;;) {
    const { value, done } = await messages.next();
    if (done) throw new Error("the server closed the connection");
    client.write(value);
    if (value[0] === READY) return value[5]!;
  }
}

/** A client's first message has no letter before its length. */
async function* messagesOf(socket: Socket, client: boolean): AsyncGenerator<Buffer, undefined> {
  let buffer = Buffer.alloc(0);
  let letter = client ? 0 : 1;
  for await (const chunk of socket) {
    buffer = Buffer.concat([buffer, chunk as Buffer]);
    for (;;) {
      if (buffer.length < letter + 4) break;
      const length = letter + buffer.readInt32BE(letter);
      if (buffer.length < length) break;
      yield buffer.subarray(0, length);
      buffer = buffer.subarray(length);
      letter = 1;
    }
  }
  return undefined;
}
