import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Server } from "node:net";
import { after, before, describe, it } from "node:test";
import { choosePort } from "../../../../src/cli/process/port.ts";

const host = "127.0.0.1";

describe("the port of a node", () => {
  let server: Server;
  let taken = 0;
  before(async () => {
    server = createServer();
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    taken = (server.address() as AddressInfo).port;
  });
  after(() => void server.close());

  it("is the next free one when nobody asked for the one in use", async () => {
    const port = await choosePort(host, taken, false);
    assert.ok(port > taken && port <= taken + 100);
  });

  it("is refused when it was asked for and is in use", async () => {
    await assert.rejects(choosePort(host, taken, true), {
      exitCode: 78,
      message: `http.port: port ${taken} on ${host} is in use`,
    });
  });

  it("is any free one when it is 0", async () => {
    assert.equal(await choosePort(host, 0, true), 0);
  });

  it("is refused with the host when that is no address of this machine", async () => {
    await assert.rejects(choosePort("192.0.2.1", 8420, false), {
      exitCode: 78,
      message: "http.host: 192.0.2.1 is not an address of this machine",
    });
  });
});
