import { AsyncLocalStorage } from 'node:async_hooks';

const partners = new AsyncLocalStorage<string>();

/** Does work for a partner, whose share of what all partners use it spends. */
export const onBehalfOf = <T>(partnerId: string, work: () => T): T => partners.run(partnerId, work);

/** The partner that the work around is done for; undefined: it is the service's own. */
export const servedPartner = (): string | undefined => partners.getStore();
