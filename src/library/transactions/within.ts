import type { TransactionClient } from "../../store/store.ts";
import { type AnyTransaction, transactionClient } from "./transaction-client.ts";

interface Submits {
  submit(task: any, payload: any, options?: { readonly client?: TransactionClient }): unknown;
  submitMany?(jobs: any, options?: { readonly client?: TransactionClient }): unknown;
}

export type SubmitsWithin<Node extends Submits> = Pick<Node, Extract<"submit" | "submitMany", keyof Node>>;

/** The submits of a node in a transaction of the caller: their jobs are committed or rolled back with it. */
export function within<Node extends Submits>(node: Node, transaction: AnyTransaction): SubmitsWithin<Node> {
  const client = transactionClient(transaction);
  const submits: Submits = {
    submit: (task, payload, options) => node.submit(task, payload, { ...options, client }),
    submitMany: (jobs, options) => node.submitMany?.(jobs, { ...options, client }),
  };
  return submits as unknown as SubmitsWithin<Node>;
}
