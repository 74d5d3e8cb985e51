/** Fails with the words that it is given, unless it is told that all is well by now. */
export default function stumble(payload: { readonly message: string; readonly code?: string }): never {
  const error = new Error(payload.message);
  throw payload.code === undefined ? error : Object.assign(error, { code: payload.code });
}
