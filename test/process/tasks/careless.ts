/** Forgets to wait for a promise that fails. */
export default async function careless(): Promise<string> {
  void Promise.reject(new Error("nobody waits for me"));
  return "done";
}
