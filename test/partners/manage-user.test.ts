import { afterAll, beforeAll, expect, it } from 'vitest';
import { partnerIdOf } from '../../commands/partners/manage-partner.ts';
import { changeUser, createUser, userIdOf } from '../../commands/partners/manage-user.ts';
import type { EventStore } from '../../event-store/port.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('changes a password without reading the earlier changes', async () => {
  let read = 0;
  const store: EventStore = {
    ...stack.store,
    readStream: async function* (...how) {
      for await (const event of stack.store.readStream(...how)) {
        read += 1;
        yield event;
      }
    },
  };
  const user = { partner_id: partnerIdOf('Acme'), name: 'anna' };
  const userId = userIdOf(user.name);
  const change = () => changeUser(store, 'ChangePassword', userId, stack.context());
  expect(await change()).toEqual({ ok: false, refusal: 'user_not_found' });
  await createUser(store, user, stack.context());
  for (let changes = 0; changes < 20; changes += 1) await change();
  read = 0;
  expect(await change()).toMatchObject({ ok: true });
  expect(read).toBeLessThan(4);
  expect(await createUser(store, user, stack.context())).toEqual({ ok: false, refusal: 'user_exists' });
  await changeUser(store, 'RemoveUser', userId, stack.context());
  expect(await change()).toEqual({ ok: false, refusal: 'user_not_found' });
  expect(await createUser(store, user, stack.context())).toEqual({ ok: false, refusal: 'user_exists' });
});
