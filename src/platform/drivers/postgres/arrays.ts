/** Arrays in PostgreSQL's binary format: values need no quoting. 200 bytes of text with quotes cost a quarter of an array literal. */

const OID = { int4: 23, int8: 20, text: 25, uuid: 2950, float8: 701 } as const;
const HEADER = 20;
const NULL_LENGTH = -1;
const UUID_BYTES = 16;

type Maybe<T> = readonly (T | null)[];

export function int4s(values: Maybe<number>): Buffer {
  return fixed(OID.int4, 4, values, (array, value, at) => array.writeInt32BE(value, at));
}

export function int8s(values: Maybe<number>): Buffer {
  return fixed(OID.int8, 8, values, (array, value, at) => {
    const high = Math.floor(value / 2 ** 32);
    array.writeInt32BE(high, at);
    array.writeUInt32BE(value - high * 2 ** 32, at + 4);
  });
}

export function float8s(values: Maybe<number>): Buffer {
  return fixed(OID.float8, 8, values, (array, value, at) => array.writeDoubleBE(value, at));
}

export function uuids(values: readonly string[]): Buffer {
  return fixed(OID.uuid, UUID_BYTES, values, putUuid);
}

/** Digit by digit: a tenth of the time that a text without its dashes and its decoding take. */
function putUuid(array: Buffer, uuid: string, at: number): void {
  let from = 0;
  for (let byte = 0; byte < UUID_BYTES; byte++) {
    if (byte === 4 || byte === 6 || byte === 8 || byte === 10) from++;
    array[at + byte] = (nibble(uuid.charCodeAt(from)) << 4) | nibble(uuid.charCodeAt(from + 1));
    from += 2;
  }
}

function nibble(code: number): number {
  return code <= 0x39 ? code - 0x30 : (code | 0x20) - 0x57;
}

export function texts(values: Maybe<string>): Buffer {
  let bytes = HEADER;
  // Counted exactly: an estimate that always suffices is three times as large, and is paid for in collections.
  for (const value of values) bytes += 4 + (value === null ? 0 : Buffer.byteLength(value));
  const array = header(OID.text, values, bytes);
  let at = HEADER;
  for (const value of values) {
    const written = value === null ? 0 : array.write(value, at + 4, "utf8");
    array.writeInt32BE(value === null ? NULL_LENGTH : written, at);
    at += 4 + written;
  }
  return array;
}

function fixed<T>(
  oid: number,
  size: number,
  values: Maybe<T>,
  put: (array: Buffer, value: T, at: number) => void,
): Buffer {
  let bytes = HEADER;
  for (const value of values) bytes += value === null ? 4 : 4 + size;
  const array = header(oid, values, bytes);
  let at = HEADER;
  for (const value of values) {
    array.writeInt32BE(value === null ? NULL_LENGTH : size, at);
    at += 4;
    if (value === null) continue;
    put(array, value, at);
    at += size;
  }
  return array;
}

/** Dimensions, whether there are nulls, the element's type; then the length and the lower bound of the one dimension. */
function header(oid: number, values: Maybe<unknown>, bytes: number): Buffer {
  const empty = values.length === 0;
  const array = Buffer.allocUnsafe(empty ? 12 : bytes);
  array.writeInt32BE(empty ? 0 : 1, 0);
  array.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  array.writeInt32BE(oid, 8);
  if (empty) return array;
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  return array;
}
