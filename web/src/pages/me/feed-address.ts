/** A server that does not know its own address gives only the path of a feed; the browser knows the rest. */
export function feedAddress(address: string): string {
  return new URL(address, location.origin).href;
}
