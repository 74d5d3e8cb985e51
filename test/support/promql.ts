/** Looks into expressions of Prometheus: not what they mean, but whether they hold together and what they name. */

import assert from "node:assert/strict";

export interface Named {
  readonly metric: string;
  /** From its matchers: label, operator, value. */
  readonly matchers: readonly (readonly [label: string, operator: string, value: string])[];
}

export interface Expression {
  readonly named: readonly Named[];
  /** Of `by (…)`, `without (…)`, `on (…)` and `ignoring (…)`. */
  readonly grouped: readonly string[];
}

const FUNCTIONS = new Set([
  "sum",
  "max",
  "min",
  "avg",
  "count",
  "rate",
  "increase",
  "changes",
  "histogram_quantile",
  "absent",
]);
const WORDS = new Set(["and", "or", "unless", "bool", "offset", "group_left", "group_right"]);
const GROUPING = new Set(["by", "without", "on", "ignoring"]);
const TOKEN =
  /\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\[[^\]]*\])|([a-zA-Z_:][a-zA-Z0-9_:]*)|(\d+(?:\.\d+)?(?:e-?\d+)?)|(=~|!~|!=|==|>=|<=|[-+*/%^<>=(){},]))/y;
const PAIRS: Readonly<Record<string, string>> = { ")": "(", "}": "{" };

export function readExpression(text: string): Expression {
  const tokens = tokensOf(text);
  const named: Named[] = [];
  const grouped: string[] = [];
  const open: string[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    if (token === "(" || token === "{") open.push(token);
    else if (token in PAIRS) assert.equal(open.pop(), PAIRS[token], `"${token}" ends nothing: ${text}`);
    else if (GROUPING.has(token)) {
      assert.equal(tokens[at + 1], "(", `${token} without a list: ${text}`);
      for (at += 2; tokens[at] !== ")"; at++) if (tokens[at] !== ",") grouped.push(tokens[at]!);
    } else if (/^[a-zA-Z_:]/.test(token) && !WORDS.has(token)) {
      const next = tokens[at + 1];
      if (next === "(" || GROUPING.has(next ?? ""))
        assert.ok(FUNCTIONS.has(token), `${token} is no known function: ${text}`);
      else {
        const { matchers, end } = matchersOf(tokens, at + 1, text);
        named.push({ metric: token, matchers });
        at = end;
      }
    }
  }
  assert.deepEqual(open, [], `not closed: ${text}`);
  assert.ok(named.length > 0, `names no metric: ${text}`);
  return { named, grouped };
}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const from = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    assert.ok(found, `cannot be read from "${text.slice(from, from + 20)}" on: ${text}`);
    tokens.push(found[0].trim());
  }
  return tokens;
}

function matchersOf(
  tokens: readonly string[],
  from: number,
  text: string,
): { matchers: Named["matchers"]; end: number } {
  const matchers: [string, string, string][] = [];
  if (tokens[from] !== "{") return { matchers, end: from - 1 };
  let at = from + 1;
  while (tokens[at] !== "}") {
    const [label, operator, value] = tokens.slice(at, at + 3);
    assert.ok(
      label && ["=", "!=", "=~", "!~"].includes(operator ?? "") && /^["']/.test(value ?? ""),
      `a matcher: ${text}`,
    );
    matchers.push([label, operator!, value!.slice(1, -1)]);
    at += 3;
    if (tokens[at] === ",") at++;
  }
  return { matchers, end: at };
}
