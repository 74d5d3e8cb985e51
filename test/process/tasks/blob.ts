interface Blob {
  readonly letter: string;
  readonly length: number;
}

/** A result of any size; what else is in its payload only has to be carried. */
export default function blob({ letter, length }: Blob): string {
  return letter.repeat(length);
}
