/**
 * An invalid value in a setting. The message continues after the name of the setting: "must be a whole number, not
 * 1.5".
 */
export class Mistake extends Error {
  override readonly name = "Mistake";
}

/** What is wrong, and what to do about it where that is known. */
export interface Advice {
  readonly message: string;
  readonly remedy: string | null;
}

export function adviceText({ message, remedy }: Advice): string {
  return remedy === null ? message : `${message}; ${remedy}`;
}
