/** Pages that a person or a monitor asks a node for, and how long they take. */

import { request, type Agent } from "undici";

export async function getPage(agent: Agent, url: string): Promise<string> {
  const { statusCode, body } = await request(url, { dispatcher: agent });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${url} was answered with ${statusCode} ${text.slice(0, 300)}`);
  return text;
}

/** In ms, one after the other. */
export async function timesOf(agent: Agent, url: string, times: number): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < times; n++) {
    const before = performance.now();
    await getPage(agent, url);
    took.push(performance.now() - before);
  }
  return took;
}
