import { expect, it } from 'vitest';
import { createExpire } from '../../event-store/postgres/deletions.ts';

it('deletes no events of a stream that was missing: one may be made of its name meanwhile', async () => {
  const run: string[] = [];
  const expire = createExpire(async (name) => {
    run.push(name);
    return name === 'expire' ? [{ name: 'there', revision: 3 }] : [{ deleted: 4 }];
  }, Date.now);
  await expire('missing', 0);
  expect(run).toEqual(['expire']);
  await expire('there', 3);
  expect(run).toEqual(['expire', 'expire', 'delete_all']);
});
