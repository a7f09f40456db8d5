import { describe, expect, it } from 'vitest';
import { all, event, eventsIn, followUntil, type SuiteContext, unique } from './context.ts';

export const contents = ({ open }: SuiteContext): void => {
  describe('an event is read as it was appended', () => {
    it.each<[string, object]>([
      ['key order', { zebra: 1, alpha: { y: 1, x: 2, 'k-1': 3 }, Middle: [{ b: 1, a: 2 }] }],
      [
        'Unicode',
        { 'ключ 🔑': 'Zürich 東京 🏢 👩‍👩‍👧 e\u0301 \u202e \u2028', nul: 'a\u0000b', lone: '\ud800' },
      ],
      ['large and small numbers', { safe: Number.MAX_SAFE_INTEGER, huge: 1e300, tiny: 5e-324, third: 1 / 3 }],
      ['integers beyond 2^53, as the strings they must be', { units: (2n ** 63n).toString() }],
      ['emptiness', { none: null, list: [], object: {}, text: '' }],
      ['quotes and escapes', { text: '\\ " \' $1 {{}} \t\r\n', path: 'C:\\x' }],
    ])('%s', async (_, data) => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', [event({ data })]);
      const [read] = await all(store.readStream(stream));
      expect(read?.data).toEqual(data);
      expect(JSON.stringify(read?.data)).toBe(JSON.stringify(data));
    });

    it('with its id, type and metadata, including correlation and cause, read or followed', async () => {
      const store = open();
      const stream = unique();
      const sent = event({
        metadata: {
          $correlationId: 'req_1',
          $causationId: 'evt_1',
          partner_id: 'ptn_1',
          key_id: 'key_1',
          expires_at: '2999-01-01T00:00:00.000Z',
        },
      });
      const after = await store.head();
      const { position } = await store.append(stream, 'no_stream', [sent]);
      const [read] = await all(store.readStream(stream));
      expect(read).toEqual({ ...sent, stream, revision: 0, position });
      expect(JSON.stringify(read?.metadata)).toBe(JSON.stringify(sent.metadata));
      const seen = (batches: Parameters<typeof eventsIn>[0]) => eventsIn(batches).length > 0;
      const [followed] = eventsIn(await followUntil(store, { after, prefixes: [stream] }, seen));
      expect(followed).toEqual(read);
    });
  });
};
