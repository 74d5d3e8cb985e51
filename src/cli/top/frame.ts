/** Computes the output that updates the screen: only changed lines, in one write, so that nothing flickers. */

export class Frame {
  #shown: readonly string[] = [];
  #width = 0;

  /** Nothing is taken to be on the screen any more: after a change of its size, or when somebody else wrote there. */
  forget(): void {
    this.#shown = [];
    this.#width = -1;
  }

  /** Empty when nothing has changed. */
  next(lines: readonly string[], width: number): string {
    const anew = width !== this.#width || lines.length !== this.#shown.length;
    let out = "";
    lines.forEach((line, at) => {
      if (anew || line !== this.#shown[at]) out += `\u001b[${at + 1};1H${line}`;
    });
    if (anew && lines.length > 0) out += "\u001b[J";
    this.#shown = lines;
    this.#width = width;
    // Terminals that know it show all of it at once; others pass it over.
    return out === "" ? "" : `\u001b[?2026h${out}\u001b[?2026l`;
  }
}
