/** A terminal's screen for tests: what is to be seen after all that was written to it. It knows what we write, and refuses the rest. */

export class VtScreen {
  rows: number;
  columns: number;
  /** The other screen is shown. */
  alternate = false;
  cursorHidden = false;
  /** At the right edge. */
  wraps = true;
  #cells: string[][] = [];
  /** Of the first screen, while the other one is shown. */
  #kept: string[][] = [];
  #row = 0;
  #column = 0;
  #rest = "";

  constructor(rows: number, columns: number) {
    this.rows = rows;
    this.columns = columns;
    this.#cells = this.#blank();
  }

  resize(rows: number, columns: number): void {
    this.rows = rows;
    this.columns = columns;
    const old = this.#cells;
    this.#cells = this.#blank().map((line, row) => line.map((_, column) => old[row]?.[column] ?? " "));
  }

  get lines(): string[] {
    return this.#cells.map((line) => line.join("").trimEnd());
  }

  get text(): string {
    return this.lines.join("\n").trimEnd();
  }

  write(part: string): void {
    const text = this.#rest + part;
    this.#rest = "";
    // oxlint-disable-next-line no-control-regex
    const tokens = /\u001b\[([?0-9;]*)([A-Za-z])|\u001b[^[]?|[^\u001b]/gu;
    for (const match of text.matchAll(tokens)) {
      const [whole, parameters, letter] = match;
      if (letter !== undefined) this.#obey(parameters!, letter);
      else if (whole.startsWith("\u001b")) {
        // The end of a piece may cut a sequence in two.
        if (match.index + whole.length < text.length)
          throw new Error(`unknown escape ${JSON.stringify(text.slice(match.index, match.index + 8))}`);
        this.#rest = text.slice(match.index);
        return;
      } else this.#put(whole);
      const left = text.slice(match.index + whole.length);
      if (left.length < 24 && left.startsWith("\u001b[") && !/[A-Za-z]/.test(left.slice(2))) {
        this.#rest = left;
        return;
      }
    }
  }

  #blank(): string[][] {
    return Array.from({ length: this.rows }, () => Array<string>(this.columns).fill(" "));
  }

  #put(character: string): void {
    if (character === "\r") this.#column = 0;
    else if (character === "\n") this.#lineFeed();
    else if (character === "\b") this.#column = Math.max(0, this.#column - 1);
    else if (character === "\u0007" || character < " ") return;
    else {
      if (this.#column >= this.columns) {
        if (!this.wraps) return;
        this.#column = 0;
        this.#lineFeed();
      }
      this.#cells[this.#row]![this.#column++] = character;
    }
  }

  #lineFeed(): void {
    if (this.#row < this.rows - 1) this.#row++;
    else this.#cells = [...this.#cells.slice(1), Array<string>(this.columns).fill(" ")];
  }

  #obey(parameters: string, letter: string): void {
    const [first = 0, second = 0] = parameters.replace("?", "").split(";").map(Number);
    switch (parameters.startsWith("?") ? `?${letter}` : letter) {
      case "H":
        this.#row = Math.min(this.rows, first || 1) - 1;
        this.#column = Math.min(this.columns, second || 1) - 1;
        return;
      case "A":
        this.#row = Math.max(0, this.#row - (first || 1));
        return;
      case "B":
        this.#row = Math.min(this.rows - 1, this.#row + (first || 1));
        return;
      case "C":
        this.#column = Math.min(this.columns - 1, this.#column + (first || 1));
        return;
      case "D":
        this.#column = Math.max(0, this.#column - (first || 1));
        return;
      case "G":
        this.#column = Math.min(this.columns, first || 1) - 1;
        return;
      case "K":
        // Behind the last character the cursor still stands on it.
        this.#cells[this.#row]!.fill(" ", first === 2 ? 0 : Math.min(this.#column, this.columns - 1));
        return;
      case "J":
        if (first === 0) this.#cells[this.#row]!.fill(" ", this.#column);
        for (let row = first === 2 ? 0 : this.#row + 1; row < this.rows; row++) this.#cells[row]!.fill(" ");
        return;
      case "m":
        return;
      case "?h":
      case "?l":
        return this.#mode(first, letter === "h");
      default:
        throw new Error(`unknown sequence ${parameters}${letter}`);
    }
  }

  #mode(mode: number, on: boolean): void {
    if (mode === 25) this.cursorHidden = !on;
    else if (mode === 7) this.wraps = on;
    else if (mode === 1049 && on !== this.alternate) {
      this.alternate = on;
      [this.#cells, this.#kept] = on ? [this.#blank(), this.#cells] : [this.#kept, this.#blank()];
    } else if (![1049, 2004, 2026].includes(mode)) throw new Error(`unknown mode ${mode}`);
  }
}
