/** The smallest task: a function of a payload. Try: baton submit hello '{"name":"you"}' --wait */
export default async function hello(payload: { readonly name?: string } | null): Promise<string> {
  return `Hello, ${payload?.name ?? "world"}!`;
}
