/**
 * Whether only this machine can reach a listener at a host. One function decides both whether callers are asked for
 * credentials and whether their Host header is checked: two that differ would let a web page reach an open node under
 * a name of its own (DNS rebinding). A name other than localhost may resolve to any address, so it is not loopback.
 */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  const url = `http://${bare.includes(":") ? `[${bare}]` : bare}`;
  if (!/^[\w.:-]+$/.test(bare) || !URL.canParse(url)) return false;
  // Normalizes case, short forms, and IPv4 addresses inside IPv6 ones (to hexadecimal).
  const { hostname } = new URL(url);
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/.test(hostname);
}
