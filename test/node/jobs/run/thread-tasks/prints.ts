export const isolation = "thread";

export default async function prints(payload: number): Promise<void> {
  console.log("thread %d", payload);
  await new Promise((resolve) => setTimeout(resolve, 10));
  console.warn("then");
}
