/** Reads server-sent events out of a text that comes in pieces, as the HTML standard has it. The dashboard uses it too. */

export interface EventSourceMessage {
  readonly event: string | undefined;
  readonly id: string | undefined;
  readonly data: string;
}

/** `\r` at the end of a piece may be the first half of a line end. */
const LINE_END = /\r\n|\n|\r(?!$)/g;

export class EventParser {
  #rest = "";
  #isFirst = true;
  #event: string | undefined;
  #id: string | undefined;
  #data: string[] = [];

  feed(piece: string): EventSourceMessage[] {
    let text = this.#rest + piece;
    if (this.#isFirst && text !== "") {
      this.#isFirst = false;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    // A long line comes in many pieces, and nothing ends it before its last one.
    if (!/[\r\n]/.test(piece) && !this.#rest.endsWith("\r")) {
      this.#rest = text;
      return [];
    }
    const lines = text.split(LINE_END);
    this.#rest = lines.pop()!;
    const messages: EventSourceMessage[] = [];
    for (const line of lines) {
      if (line === "") this.#endMessage(messages);
      else this.#take(line);
    }
    return messages;
  }

  #take(line: string): void {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value || undefined;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
  }

  /** One without data says nothing, also when it has a type. */
  #endMessage(messages: EventSourceMessage[]): void {
    const { [0]: first } = this.#data;
    if (first !== undefined) messages.push({ event: this.#event, id: this.#id, data: this.#data.join("\n") });
    this.#event = this.#id = undefined;
    this.#data = [];
  }
}
