/** Visitors of the partners' websites, whose pixels repeat a visit that was not acknowledged. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { noteCounting, type Partner, type Tab } from '../partners.ts';
import type { Load } from './load.ts';

/** The origin of every tracker. */
export const PAGE = 'https://www.example.com';
const TRIES = 5;
const RETRY_MS = 500;

/** Visits a website in a new tab: once or twice, at random from a second address. */
export const visit = async (load: Load): Promise<void> => {
  const partner = load.random.pick(load.partners);
  const token = randomUUID();
  const addresses = new Set([load.nextIp(), ...(load.random.chance(0.15) ? [load.nextIp()] : [])]);
  for (const ip of addresses) {
    const tab: Tab = { label: `${token} ${ip}`, token, ip, acknowledgedAt: null, shown: false };
    partner.tabs.set(tab.label, tab);
    await view(load, partner, tab);
    if (load.random.chance(0.25)) await view(load, partner, tab);
  }
};

const view = async (load: Load, partner: Partner, tab: Tab): Promise<void> => {
  const visitId = randomUUID();
  for (let tries = TRIES; tries > 0; tries -= 1) {
    if (await capture(load, partner, tab, visitId)) {
      // As a pixel does whose first response was lost.
      if (load.random.chance(0.25)) await capture(load, partner, tab, visitId);
      return;
    }
    await pause(RETRY_MS);
  }
};

/** @returns whether the visit was acknowledged */
const capture = async ({ client }: Load, partner: Partner, tab: Tab, visitId: string): Promise<boolean> => {
  const { label, token, ip } = tab;
  const answer = await client.ask('capture', [204], 'POST', '/tracking/collect', {
    headers: { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': ip },
    body: { tracker_id: partner.trackerId, token, visit_id: visitId, custom: { tab: label } },
  });
  noteCounting(partner.captures, answer);
  if (answer?.status !== 204) return false;
  tab.acknowledgedAt ??= performance.now();
  return true;
};
