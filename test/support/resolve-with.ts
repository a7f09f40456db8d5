/** Preloaded into a process (`--import`): resolves names at the DNS server that `TEST_DNS_SERVER` names. */
import { Resolver } from 'node:dns/promises';

const { resolve4, resolve6 } = Resolver.prototype;
const pointed = new WeakSet<Resolver>();
const point = (resolver: Resolver): void => {
  if (pointed.has(resolver)) return;
  pointed.add(resolver);
  resolver.setServers([process.env.TEST_DNS_SERVER ?? '']);
};
Object.assign(Resolver.prototype, {
  resolve4(this: Resolver, name: string) {
    point(this);
    return Reflect.apply(resolve4, this, [name]);
  },
  resolve6(this: Resolver, name: string) {
    point(this);
    return Reflect.apply(resolve6, this, [name]);
  },
});
