import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabasePool } from 'slonik';
import { ownContext } from '../../commands/handle.ts';
import { createKey, createPartner, newApiKey, partnerIdOf } from '../../commands/partners/manage-partner.ts';
import { DEFAULT_LIMITS } from '../../domain/partners/partner.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { findDeletedPartner, hasPartners } from '../../queries/partners/partners.ts';
import type { Reached } from '../retire-streams.ts';

const NAME = 'demo';
const READY_MS = 10_000;

export interface DemoDeps {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly db: DatabasePool;
  readonly dataDir: string;
  /** Progress of the read models. */
  readonly progress: Reached;
}

export interface Demo {
  readonly file: string;
  /** null: an earlier start made the key; it is in the file. */
  readonly newKey: string | null;
}

/**
 * Creates a demo partner and key on the first start. The key is written to `demo.env` (mode 0600) before its event, so that
 * the next start completes an interrupted one.
 * @returns null if other partners exist or the demo partner or its key is no more
 */
export async function ensureDemo(deps: DemoDeps, url: string): Promise<Demo | null> {
  const { store, clock, db, dataDir, progress } = deps;
  await progress.reached(['partners'], await store.head(), READY_MS);
  const file = join(dataDir, 'demo.env');
  const known = await keyIn(file);
  if (known === null ? await hasPartners(db) : await findDeletedPartner(db, partnerIdOf(NAME))) return null;
  const api_key = known ?? newApiKey();
  await writeFile(file, `DOORPLATE_URL=${url}\nDOORPLATE_API_KEY=${api_key}\n`, { mode: 0o600 });
  const context = ownContext(clock);
  await createPartner(store, NAME, context);
  const wanted = {
    partner_id: partnerIdOf(NAME),
    name: NAME,
    limits: DEFAULT_LIMITS,
    api_key,
    by: 'operator',
  } as const;
  const made = await createKey(store, wanted, context);
  if (!made.ok) {
    // Another process was first, and its key is in its own data folder.
    await rm(file);
    return null;
  }
  await progress.reached(['partners'], made.value.position, READY_MS);
  return { file, newKey: known === null ? api_key : null };
}

async function keyIn(file: string): Promise<string | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^DOORPLATE_API_KEY=(\S+)$/m.exec(text)?.[1] ?? null;
}
