/** Who reaches whom: a row asks, a column is asked. A cut between two nodes is a cell, not a riddle. */

import type { NodeBody } from "../../../src/api/bodies/node-body.ts";
import { Table } from "../parts/table.tsx";

interface Reach {
  readonly node: string;
  readonly ok: boolean;
  readonly latency_ms: number | null;
  readonly reason: string | null;
}

type Reaching = NodeBody & { readonly reach?: readonly Reach[] };

export function ReachMatrix({ nodes }: { nodes: readonly Reaching[] }) {
  if (nodes.length < 2 || nodes.every(({ reach }) => reach === undefined || reach.length === 0)) return null;
  return (
    <section aria-labelledby="reach">
      <h2 id="reach">Who reaches whom</h2>
      <Table
        label="Who reaches whom"
        class="matrix"
        head={
          <>
            <th>from ↓ to →</th>
            {nodes.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </>
        }
      >
        {nodes.map((from) => (
          <tr key={from.name}>
            <th scope="row">{from.name}</th>
            {nodes.map((target) => (
              <Cell key={target.name} from={from} target={target.name} />
            ))}
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Cell({ from, target }: { from: Reaching; target: string }) {
  if (from.name === target) return <td class="muted">·</td>;
  const reach = from.status === "dead" ? undefined : from.reach?.find(({ node }) => node === target);
  if (!reach) return <td class="muted">unknown</td>;
  if (reach.ok) {
    return (
      <td class="good-text num">
        {reach.latency_ms === null ? "yes" : `${Math.round(reach.latency_ms)} ms`}
      </td>
    );
  }
  return (
    <td class="bad-text" title={reach.reason ?? undefined}>
      no{reach.reason && <div class="cell-reason">{reach.reason}</div>}
    </td>
  );
}
