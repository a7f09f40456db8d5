import { readEvent } from '../../domain/kernel/events.ts';
import { profileName, websiteHost } from '../../domain/kernel/text.ts';
import { enrichmentEvents } from '../../domain/lookup/events.ts';
import type { Projection } from '../projection.ts';

interface Row {
  readonly ip: string;
  readonly hostname: string;
  readonly profile: string;
  readonly enriched_at: string;
}

/** Projects host names of companies' websites, with which the domains of clues are matched. */
export const profiles: Projection = {
  name: 'profiles',
  tables: ['company_profile'],
  types: Object.keys(enrichmentEvents),
  async apply(events, db) {
    const rows = new Map<string, Row | null>();
    for (const recorded of events) {
      const event = readEvent(enrichmentEvents, recorded);
      if (event?.type === 'lookup.ResultForgotten.v1') rows.set(event.data.ip, null);
      if (event === null || !('result' in event.data)) continue;
      const { ip, company, enriched_at } = event.data.result;
      const hostname = company && websiteHost(company.website);
      rows.set(ip, company && hostname ? { ip, hostname, profile: profileName(company), enriched_at } : null);
    }
    if (rows.size === 0) return;
    const gone = [...rows].flatMap(([ip, row]) => (row === null ? [ip] : []));
    const remaining = [...rows.values()].filter((row) => row !== null);
    await db.query({ name: 'keep_profiles', text: KEEP, values: [gone, JSON.stringify(remaining)] });
  },
};

const KEEP = `
  with gone as (
    delete from company_profile where ip = any ($1))
  insert into company_profile (ip, hostname, profile, enriched_at)
  select ip, hostname, profile, enriched_at from json_populate_recordset(null::company_profile, $2)
  on conflict (ip) do update set (hostname, profile, enriched_at) =
    (excluded.hostname, excluded.profile, excluded.enriched_at)`;
