import { expect, test, vi } from 'vitest';
import { userIdOf } from '../../commands/partners/manage-user.ts';
import { composed, isName, searchKey } from '../../domain/kernel/text.ts';
import { trackersDecider } from '../../domain/trackers/trackers.ts';
import { endpointsDecider } from '../../domain/webhooks/endpoints.ts';
import { hashPassword, isPassword } from '../../platform/crypto/passwords.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';
import { given } from './deciding.ts';

const ID = '00000001-0000-4000-8000-000000000000';

test.each(['a\nb', 'a\tb', 'a\u007fb', 'a\u0085b', '\u001b[31m', 'a\u0000', '\ud800', '', 'a'.repeat(11)])(
  '%j is not a valid name',
  (name) => expect(isName(name, 10)).toBe(false),
);
test.each(['a', 'Köln 1', '日本語', '😀'])('%j is a valid name', (name) =>
  expect(isName(name, 10)).toBe(true),
);

test.each([
  ['istanbul', 'İstanbul'],
  ['İ', 'I\u0307'],
  ['ü', 'u\u0308'],
  ['ΣΊΣΥΦΟΣ', 'Σίσυφος'],
  ['Straße', 'STRASSE'],
  ['ẞ', 'ss'],
  ['ﬁne', 'FINE'],
  ['ａｂｃ', 'ABC'],
])('a search finds %j by %j', (one, other) => expect(searchKey(one)).toBe(searchKey(other)));
test.each([
  ['Müller', 'Muller'],
  ['ı', 'i'],
])('a search tells %j from %j', (one, other) => expect(searchKey(one)).not.toBe(searchKey(other)));

test('trackers and webhook endpoints refuse a name with a control character', () => {
  given(trackersDecider, [])
    .when({
      type: 'Create',
      partner_id: ANNA,
      tracker_id: ID,
      name: 'a\nb',
      origins: ['https://a.example'],
      customer_reference: null,
      limit: 10,
      at: AT,
    })
    .thenRefused('invalid_tracker');
  given(endpointsDecider, [])
    .when({
      type: 'Create',
      partner_id: ANNA,
      webhook_id: ID,
      name: 'a\u001bb',
      url: 'https://a.example/',
      events: ['session.created'],
      tracker_id: null,
      tracker_known: false,
      secret: { master_key_id: 'k', sealed: 's' },
      limit: 5,
      destinations: { allowHttp: false, allowPorts: [], allowNetworks: [], ownOrigins: [] },
      at: AT,
    })
    .thenRefused('invalid_webhook');
});

test('names and passwords are Unicode-normalized up to their allowed length and longer text is not', async () => {
  // Normalizing the marks of a form of 64 KiB blocked the event loop for 0.4 s before the rate limit, and 2,000 for 10 ms.
  const marks = '\u0344'.repeat(401) + '\u0316'.repeat(400);
  const normalize = vi.spyOn(String.prototype, 'normalize');
  try {
    expect(composed(marks)).toBe(marks);
    userIdOf(marks);
    await isPassword(marks, await hashPassword('three wise words'));
    expect(normalize.mock.contexts.map(String)).not.toContain(marks);
  } finally {
    normalize.mockRestore();
  }
  expect(composed('\u1112\u1161\u11ab'.repeat(200))).toBe('\ud55c'.repeat(200));
  expect(composed('e\u0301'.repeat(200))).toBe('\u00e9'.repeat(200));
});
