import { findDeletedPartner, findPartner } from '../queries/partners/partners.ts';
import { Refused, type Session } from './session.ts';

/** Finds a partner by id or name. @throws Refused if there is none */
export async function partnerOf({ db, store, projected }: Session, idOrName: string) {
  await projected(await store.head());
  const partner = await findPartner(db, idOrName);
  if (!partner) throw new Refused(`partner_not_found: ${idOrName}`);
  return partner;
}

/** Finds the partner of a ledger, which outlives its partner. @throws Refused if there is none */
export async function ledgerOf(session: Session, idOrName: string): Promise<string> {
  await session.projected(await session.store.head());
  const { db } = session;
  const partner = (await findPartner(db, idOrName)) ?? (await findDeletedPartner(db, idOrName));
  if (!partner) throw new Refused(`partner_not_found: ${idOrName}`);
  return partner.partner_id;
}
