import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Channels } from "../../../../src/channels/channels.ts";
import { DispatchConsumers } from "../../../../src/push/dispatch/dispatch-consumers.ts";

function consumersOf() {
  const open = new Set<string>();
  const consume: Channels["consume"] = (queue) => {
    open.add(queue);
    return { close: async () => void open.delete(queue) };
  };
  const consumers = new DispatchConsumers({ consume }, async () => {});
  return { consumers, open };
}

describe("a worker's consumers of dispatch queues", () => {
  it("are there while it wants more, and let go of queues that nobody has named for long", () => {
    const { consumers, open } = consumersOf();
    consumers.know("own", Infinity);
    consumers.know("old", 1);
    consumers.know("named", 1);
    assert.deepEqual([...open], []);
    consumers.listen(5);
    assert.deepEqual([...open], ["own", "old", "named"]);
    consumers.know("named", 50);
    consumers.forget(40);
    assert.deepEqual([...open], ["own", "named"]);
    consumers.know("old", 60);
    assert.deepEqual([...open], ["own", "named", "old"], "it is used again");
  });

  it("keep a queue that they do not listen to: there may be something left in it", () => {
    const { consumers, open } = consumersOf();
    consumers.know("old", 1);
    consumers.forget(40);
    consumers.listen(5);
    assert.deepEqual([...open], ["old"]);
  });
});
