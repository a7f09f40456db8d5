import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { createKey, createPartner } from '../commands/partners/manage-partner.ts';
import { allProjections } from '../projections/all.ts';
import { listPartners } from '../read-api/partner-rows.ts';
import type { Foundation } from './foundation.ts';
import { DEFAULT_LIMITS } from './key-limits.ts';

const NAME = 'demo';
const READY_MS = 10_000;

export interface Demo {
  readonly file: string;
  /** null: made by an earlier start; it stands in the file. */
  readonly newKey: string | null;
}

/**
 * The partner and key that a first start makes for a newcomer. The key is written to `demo.env` (mode 0600) before
 * its event, so that a start that was killed in between is taken up by the next. null where there are other
 * partners, or the demo's key was put away.
 */
export const ensureDemo = async (foundation: Foundation, url: string): Promise<Demo | null> => {
  const { store, clock, db, dataDir, progress } = foundation;
  await progress.reached(
    allProjections.map((projection) => projection.name),
    await store.head(),
    READY_MS,
  );
  const file = join(dataDir, 'demo.env');
  const known = await keyIn(file);
  const partners = await listPartners(db);
  if (known === null && partners.length > 0) return null;
  const api_key = known ?? `dp_${randomBytes(32).toString('base64url')}`;
  await writeFile(file, `DOORPLATE_URL=${url}\nDOORPLATE_API_KEY=${api_key}\n`, { mode: 0o600 });
  const id = uuid();
  const context = { correlationId: id, causationId: id, at: clock.now() };
  const partner_id = await demoPartner(foundation, context);
  const made = await createKey(store, { partner_id, name: NAME, limits: DEFAULT_LIMITS, api_key }, context);
  if (made.ok) await progress.reached(['partners'], made.value.position, READY_MS);
  return { file, newKey: known === null ? api_key : null };
};

const demoPartner = async (
  { store, db }: Foundation,
  context: Parameters<typeof createPartner>[2],
): Promise<string> => {
  const created = await createPartner(store, NAME, context);
  if (created.ok) return created.value.partner_id;
  const partner = (await listPartners(db)).find(({ name }) => name === NAME);
  if (!partner) throw new Error(`the demo partner could not be made: ${created.refusal}`);
  return partner.partner_id;
};

const keyIn = async (file: string): Promise<string | null> => {
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^DOORPLATE_API_KEY=(\S+)$/m.exec(text)?.[1] ?? null;
};
