/**
 * Something that a person wrote and that cannot be meant. The message goes on from the name of the thing:
 * "must be a whole number, not 1.5".
 */
export class Mistake extends Error {
  override readonly name = "Mistake";
}
