/** Which nodes reach each other: a row calls, a column is called. */

import type { NodeBody } from "../../../src/api/operations/cluster/nodes.ts";
import { Scroll, Section } from "../parts/table.tsx";

export function ReachMatrix({ nodes }: { nodes: readonly NodeBody[] }) {
  if (nodes.length < 2 || nodes.every(({ reach }) => reach.length === 0)) return null;
  return (
    <Section id="reach" title="Who reaches whom">
      <Scroll label="Who reaches whom" class="matrix">
        <thead>
          <tr>
            <th>from ↓ to →</th>
            {nodes.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {nodes.map((from) => (
            <tr key={from.name}>
              <th scope="row">{from.name}</th>
              {nodes.map((target) => (
                <Cell key={target.name} from={from} target={target.name} />
              ))}
            </tr>
          ))}
        </tbody>
      </Scroll>
    </Section>
  );
}

function Cell({ from, target }: { from: NodeBody; target: string }) {
  if (from.name === target) return <td class="muted">·</td>;
  const reach = from.status === "dead" ? undefined : from.reach.find(({ node }) => node === target);
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
