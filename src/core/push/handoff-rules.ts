/**
 * The states of one assignment that its owner hands over.
 *
 *   offering ──sent──> offered ──silence──> asking ──still ours──> offering …   (`tries` offers in all)
 *                                              '──and no try is left──> orphaning ──> orphaned    when the owner leaves
 *                                                                  '──> kept                      when it stays
 *
 *   from anywhere:  acknowledged under a newer epoch, or the store names another owner ──> handed over
 *                   its jobs have ended ──> finished
 *
 * An acknowledgement is a hint that saves a query; the store decides who the owner is. So after silence the store is
 * asked before a second offer is sent. An offer that is accepted twice is harmless, because a claim compares the epoch.
 */

export interface HandoffRules {
  readonly ackMs: number;
  /** Offers in all. */
  readonly tries: number;
  readonly whenSilent: "orphan" | "keep";
}

export interface HandedOwnership {
  readonly incarnation: string;
  readonly ownerEpoch: number;
}

export type HandoffEnd = "handed_over" | "finished" | "orphaned" | "kept";

export type HandoffState =
  | { readonly phase: "offering" | "asking"; readonly tries: number }
  | { readonly phase: "offered"; readonly tries: number; readonly answerBy: number }
  | { readonly phase: "orphaning" }
  | { readonly phase: "over"; readonly end: HandoffEnd };

export type HandoffEvent =
  /** The offer was sent, or may have been. */
  | { readonly kind: "sent"; readonly at: number }
  | { readonly kind: "acknowledged"; readonly ownerEpoch: number }
  | { readonly kind: "time"; readonly at: number }
  /** The answer of the store. Null: it is gone, as its jobs are. */
  | { readonly kind: "truth"; readonly found: StoredOwner | null }
  /** It has no owner now. */
  | { readonly kind: "released" }
  | { readonly kind: "ended" }
  /** A write was refused: another node owns it. */
  | { readonly kind: "lost" };

export interface StoredOwner {
  readonly incarnation: string | null;
  readonly ownerEpoch: number;
}

/** `orphan`: release it without an owner. */
export type HandoffEffect = "offer" | "read" | "orphan" | null;

export interface HandoffStep {
  readonly state: HandoffState;
  readonly effect: HandoffEffect;
}

export function beginHandoff(): HandoffStep {
  return { state: { phase: "offering", tries: 1 }, effect: "offer" };
}

export function stepHandoff(
  state: HandoffState,
  event: HandoffEvent,
  held: HandedOwnership,
  rules: HandoffRules,
): HandoffStep {
  if (state.phase === "over") return stay(state);
  switch (event.kind) {
    case "sent":
      if (state.phase !== "offering") return stay(state);
      return stay({ phase: "offered", tries: state.tries, answerBy: event.at + rules.ackMs });
    case "acknowledged":
      // A late or repeated one of an earlier handoff says nothing.
      return event.ownerEpoch > held.ownerEpoch ? over("handed_over") : stay(state);
    case "time":
      if (state.phase !== "offered" || event.at < state.answerBy) return stay(state);
      return { state: { phase: "asking", tries: state.tries }, effect: "read" };
    case "truth":
      return afterTruth(state, event.found, held, rules);
    case "released":
      return state.phase === "orphaning" ? over("orphaned") : stay(state);
    case "ended":
      return over("finished");
    case "lost":
      return over("handed_over");
    default:
      return event satisfies never;
  }
}

function afterTruth(
  state: Exclude<HandoffState, { readonly phase: "over" }>,
  found: StoredOwner | null,
  held: HandedOwnership,
  rules: HandoffRules,
): HandoffStep {
  if (!found) return over("finished");
  // Without an owner: we were taken for dead, and the leader offers it.
  if (found.incarnation === null) return over("orphaned");
  if (found.incarnation !== held.incarnation || found.ownerEpoch > held.ownerEpoch)
    return over("handed_over");
  if (state.phase !== "asking") return stay(state);
  if (state.tries < rules.tries)
    return { state: { phase: "offering", tries: state.tries + 1 }, effect: "offer" };
  return rules.whenSilent === "keep" ? over("kept") : { state: { phase: "orphaning" }, effect: "orphan" };
}

function over(end: HandoffEnd): HandoffStep {
  return stay({ phase: "over", end });
}

function stay(state: HandoffState): HandoffStep {
  return { state, effect: null };
}
