import { expect, it } from 'vitest';
import { createBriefCache } from '../../platform/brief-cache.ts';

it('holds no more than a thousand answers, whose size callers choose', async () => {
  const asked: string[] = [];
  const { find } = createBriefCache(async (key) => {
    asked.push(key);
    return 'o'.repeat(13_000);
  });
  for (let key = 0; key <= 1_000; key += 1) await find(String(key));
  await find('1000');
  expect(asked).toHaveLength(1_001);
  await find('0');
  expect(asked.at(-1)).toBe('0');
});
