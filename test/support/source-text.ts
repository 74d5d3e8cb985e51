/**
 * A TypeScript file taken apart just far enough for rules about it: its code without comments and texts, its texts, and
 * what it imports. Not a parser: TypeScript 7 has no API for one, and tokens are all that the rules need.
 */

export interface SourceText {
  /** The same length as the file; comments and the insides of texts and patterns are blanks. */
  readonly code: string;
  /** Insides of quoted texts and templates, with the place at which each begins. */
  readonly texts: readonly { readonly at: number; readonly text: string }[];
  readonly imports: readonly { readonly at: number; readonly from: string }[];
}

/** After these a slash begins a pattern; after anything else it divides. */
const BEFORE_PATTERN =
  /(?:^|[=(,:;!&|?{}[+\-*%<>~^]|\b(?:return|typeof|case|in|of|do|else|void|await|yield))\s*$/;

export function readSource(text: string): SourceText {
  const code = text.replaceAll(/[^\n]/g, " ").split("");
  const texts: { at: number; text: string }[] = [];
  let at = 0;
  const keep = (): void => void (code[at] = text[at++]!);

  const skipTo = (end: number): void => void (at = Math.min(end, text.length));
  const lineEnd = (): number => indexOr(text, "\n", at);

  function quoted(quote: string): void {
    keep();
    const from = at;
    while (at < text.length && text[at] !== quote && text[at] !== "\n") at += text[at] === "\\" ? 2 : 1;
    texts.push({ at: from, text: text.slice(from, at) });
    if (text[at] === quote) keep();
  }

  function template(): void {
    keep();
    let from = at;
    while (at < text.length && text[at] !== "`") {
      if (text[at] === "\\") at += 2;
      else if (text.startsWith("${", at)) {
        texts.push({ at: from, text: text.slice(from, at) });
        at += 2;
        walk("}");
        at++;
        from = at;
      } else at++;
    }
    texts.push({ at: from, text: text.slice(from, at) });
    if (at < text.length) keep();
  }

  function pattern(): void {
    keep();
    let inClass = false;
    for (; at < text.length && text[at] !== "\n" && (inClass || text[at] !== "/"); at++) {
      if (text[at] === "\\") at++;
      else if (text[at] === "[") inClass = true;
      else if (text[at] === "]") inClass = false;
    }
    if (text[at] === "/") keep();
  }

  function walk(until: string | null): void {
    let depth = 0;
    while (at < text.length) {
      const here = text[at]!;
      if (until !== null && depth === 0 && here === until) return;
      if (text.startsWith("//", at)) skipTo(lineEnd());
      else if (text.startsWith("/*", at)) skipTo(indexOr(text, "*/", at + 2) + 2);
      else if (here === '"' || here === "'") quoted(here);
      else if (here === "`") template();
      else if (here === "/" && BEFORE_PATTERN.test(code.slice(Math.max(0, at - 40), at).join(""))) pattern();
      else {
        if (here === "{") depth++;
        if (here === "}") depth--;
        keep();
      }
    }
  }

  walk(null);
  const whole = code.join("");
  return { code: whole, texts, imports: importsOf(whole, texts) };
}

function importsOf(code: string, texts: SourceText["texts"]): SourceText["imports"] {
  return texts.flatMap(({ at, text }) => {
    const isQuoted = code[at - 1] === '"' || code[at - 1] === "'";
    const follows = /\b(?:from|import|import\s*\()\s*$/.test(code.slice(0, at - 1));
    return isQuoted && follows ? [{ at, from: text }] : [];
  });
}

export function lineOf(text: string, at: number): number {
  return text.slice(0, at).split("\n").length;
}

function indexOr(text: string, wanted: string, from: number): number {
  const found = text.indexOf(wanted, from);
  return found < 0 ? text.length : found;
}
