import { expect, it } from 'vitest';
import { domainFields, type ShownDomain } from '../../read-api/domains/schemas.ts';

const claim: ShownDomain = {
  domain_id: 'd',
  tracker_id: 't',
  partner_id: 'p',
  hostname: 'visits.example.com',
  status: 'pending',
  created_at: '2026-03-14T12:30:00.000Z',
  activated_at: null,
  last_error: null,
};
const CHECKED_AT = '2026-03-14T12:30:01.000Z';
const checkedAt = (domain: Partial<ShownDomain>) =>
  domainFields({ ...claim, ...domain }, CHECKED_AT, {
    serviceHost: 'doorplate.test',
    tokenOf: () => 'token',
    needsProof: false,
  }).checked_at;

it('shows no time of a check that the shown claim does not have yet', () => {
  expect(checkedAt({})).toBeNull();
});

it('shows the time of the check whose outcome it shows', () => {
  expect(checkedAt({ last_error: 'no_such_name' })).toBe(CHECKED_AT);
  expect(checkedAt({ status: 'active' })).toBe(CHECKED_AT);
});
