import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { TOTP } from 'otpauth';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRuntime, type Runtime } from '../../bin/runtime.ts';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { utcDay } from '../../domain/kernel/time.ts';
import { bindKeys, serviceKey } from '../../platform/crypto/keyring.ts';
import { keyFileIn, masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { createSecondFactors } from '../../processors/partners/second-factor.ts';
import { type RotationDeps, rotateMaster } from '../../processors/rotate-master.ts';
import { createTargets } from '../../queries/webhooks/webhooks.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { Killed } from '../support/other-stores.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

let folder: string;
let api: TestApi;
let webhooks: readonly string[];

const call = async (key: Key, method: 'POST' | 'DELETE', path: string, payload?: object): Promise<string> => {
  const given = payload === undefined ? {} : { payload };
  const answer = await api.inject(key, { method, url: `/v1/webhooks${path}`, ...given });
  expect(answer.statusCode, answer.body).toBeLessThan(300);
  return answer.json().id;
};

/** Endpoints of two partners: with one secret, with two, and deleted; and the key of a day. */
const open = async (env: Readonly<Record<string, string>>): Promise<void> => {
  api = await startApi({ env: { DATA_DIR: folder, ...env } });
  const [anna, bert] = [await api.key(), await api.key()];
  const valid = { name: 'receiver', url: 'https://hooks.example.com/', events: ['session.created'] };
  const one = await call(anna, 'POST', '', valid);
  const two = await call(bert, 'POST', '', valid);
  await call(bert, 'POST', `/${two}/rotate-secret`);
  await call(bert, 'DELETE', `/${await call(bert, 'POST', '', valid)}`);
  webhooks = [one, two];
  await setUpSecondFactor();
  await api.runtime.dayKeys.of(utcDay(api.runtime.clock.now()));
  await api.caughtUp();
};

const USER = '5f0c3f0e-3f0e-4f0e-8f0e-3f0e3f0e3f0e';

const setUpSecondFactor = async (): Promise<void> => {
  const factors = createSecondFactors(api.runtime);
  const { secret, proposal } = await factors.propose(USER, 'Ada', 'a login');
  const code = new TOTP({ secret }).generate({ timestamp: api.runtime.clock.now() });
  const given = { proposal, about: 'a login', code, token: 'a token' };
  expect(await factors.enable(USER, given)).toHaveLength(10);
  codeOf = (steps) => new TOTP({ secret }).generate({ timestamp: api.runtime.clock.now() + steps * 30_000 });
};
let codeOf: (stepsAhead: number) => string;

beforeEach(() => {
  folder = makeTestFolder();
});
afterEach(async () => {
  await api.close();
  await removeDataFolder(folder);
});

const KEYS = ['address-digest', 'cursor'];
/** All decrypted values. */
const opened = async (runtime: Runtime) => {
  const targets = await createTargets(runtime)(webhooks);
  const { pool, master } = runtime;
  return {
    secrets: webhooks.map((id) => targets.get(id)?.secrets ?? []),
    keys: await Promise.all(KEYS.map((name) => serviceKey(pool, master, name))),
  };
};
/** All decrypted values in a process that starts now. */
const openedAnew = async (env: Readonly<Record<string, string>> = {}) => {
  const { config, log, clock } = api.runtime;
  const runtime = await openRuntime({ ...config, ...env }, log, 'join', { clock });
  try {
    return await opened(runtime);
  } finally {
    await runtime.close();
  }
};
const sealedUnder = async (): Promise<string[]> => {
  const { rows } = await api.sql.query(
    `select master_key_id as id from work.keyring
     union select secret->>'master_key_id' from read.webhook_endpoint where secret is not null
     union select secret->>'master_key_id' from work.second_factor
     union select previous_secret->>'master_key_id' from read.webhook_endpoint where previous_secret is not null`,
  );
  return rows.map(({ id }) => id);
};
const context = { correlationId: 'c', causationId: 'c', at: 0 };
const partsOf = (over: Partial<RotationDeps> = {}): RotationDeps => ({
  ...api.runtime,
  keyFile: keyFileIn(folder),
  settleMs: 0,
  ...over,
});
const keyLines = async () => (await readFile(keyFileIn(folder), 'utf8')).trimEnd().split('\n');

/** As earlier versions stored the keys of the service. */
const sealWithoutNames = async (): Promise<void> => {
  const { pool, master } = api.runtime;
  const { rows } = await pool.query<{ name: string }>('select name from work.keyring');
  for (const { name } of rows) {
    const { master_key_id, sealed } = master.seal(await serviceKey(pool, master, name));
    await pool.query('update work.keyring set master_key_id = $2, sealed = $3 where name = $1', [
      name,
      master_key_id,
      sealed,
    ]);
  }
};

/** Dies after its n-th effect, counted from 0: a store call, a query, or a written key. */
const dying = (n: number) => {
  let effects = 0;
  const done = <T>(result: T): T => {
    effects += 1;
    if (effects > n) throw new Killed();
    return result;
  };
  const { store, pool } = api.runtime;
  const counted = new Proxy(store, {
    get: (of, name: 'append' | 'head') =>
      name === 'append' || name === 'head'
        ? async (...args: never[]) =>
            done(await (of[name] as (...given: never[]) => Promise<unknown>)(...args))
        : of[name],
  });
  const countedPool = {
    query: async (...args: never[]) =>
      done(await (pool.query as (...given: never[]) => Promise<unknown>)(...args)),
    connect: async () => {
      const client = await pool.connect();
      return {
        query: async (text: string, values?: unknown[]) => {
          const result = await client.query(text, values);
          return text === 'commit' ? done(result) : result;
        },
        release: (destroy?: boolean) => client.release(destroy),
      };
    },
  } as unknown as pg.Pool;
  return { parts: partsOf({ store: counted, pool: countedPool }), effects: () => effects };
};

describe("a change of the data folder's master key", () => {
  it('seals everything under a new key, and values sealed before stay readable', async () => {
    await open({ MASTER_KEY: '' });
    const before = await opened(api.runtime);
    expect(before.secrets.map(({ length }) => length)).toEqual([1, 2]);
    const [old] = await keyLines();
    expect(await rotateMaster(partsOf(), context)).toEqual({ keys: 3, endpoints: 2, second_factors: 1 });
    const lines = await keyLines();
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toBe(old);
    await api.caughtUp();
    expect(await sealedUnder()).toEqual([api.runtime.master.currentId()]);
    expect(await opened(api.runtime)).toEqual(before);
    expect(await createSecondFactors(api.runtime).take(USER, codeOf(1))).toBe(true);
    expect(await openedAnew()).toEqual(before);
  });

  it('may be killed after its steps and is resumed', async () => {
    await open({ MASTER_KEY: '' });
    const before = await opened(api.runtime);
    await sealWithoutNames();
    let steps = 0;
    // Every third step: each takes two starts.
    for (let n = 0; ; n += 3) {
      const { parts, effects } = dying(n);
      const outcome = await rotateMaster(parts, context).catch((error: unknown) => error);
      if (!(outcome instanceof Killed)) break;
      expect(effects(), `killed at ${n}`).toBe(n + 1);
      expect(await keyLines()).toHaveLength(2);
      expect(await opened(api.runtime), `killed at ${n}`).toEqual(before);
      expect(await openedAnew(), `killed at ${n}`).toEqual(before);
      await rotateMaster(partsOf(), context);
      expect(await keyLines()).toHaveLength(1);
      await api.caughtUp();
      expect(await sealedUnder(), `killed at ${n}`).toEqual([api.runtime.master.currentId()]);
      expect(await openedAnew(), `killed at ${n}`).toEqual(before);
      steps += 1;
    }
    expect(steps).toBeGreaterThan(4);
  }, 120_000);

  it('accepts values that a process seals under the previous key until the change has ended', async () => {
    await open({ MASTER_KEY: '' });
    const old = masterKeyFrom(Buffer.from((await keyLines())[0] ?? '', 'base64'));
    const rotating = rotateMaster(partsOf({ settleMs: 2_000 }), context);
    await eventually('all is resealed', async () => {
      const ids = await sealedUnder();
      return ids.length === 1 && ids[0] !== old.currentId();
    });
    const late = await serviceKey(api.runtime.pool, old, 'late');
    expect(await rotating).toEqual({ keys: 4, endpoints: 2, second_factors: 1 });
    expect(await serviceKey(api.runtime.pool, api.runtime.master, 'late')).toEqual(late);
  });

  it('stops and keeps both keys when a value is sealed under a third key', async () => {
    await open({ MASTER_KEY: '' });
    await serviceKey(api.runtime.pool, masterKeyFrom(randomBytes(32)), 'foreign');
    await expect(rotateMaster(partsOf(), context)).rejects.toThrow('MASTER_KEY is not the one');
    expect(await keyLines()).toHaveLength(2);
  });
});

describe('the first start after an upgrade', () => {
  it('opens the keys that an earlier version sealed without their names, and binds them', async () => {
    await open({ MASTER_KEY: '' });
    const before = await opened(api.runtime);
    await sealWithoutNames();
    expect(await openedAnew()).toEqual(before);
    expect(await bindKeys(api.runtime.pool, api.runtime.master)).toBe(0);
    expect(await opened(api.runtime)).toEqual(before);
  });
});

describe('a change of the configured master key', () => {
  it('lets processes with either key run, as long as they know the other', async () => {
    const [MASTER_KEY, NEXT] = [randomBytes(32), randomBytes(32)].map((key) => key.toString('base64')) as [
      string,
      string,
    ];
    await open({ MASTER_KEY, MASTER_KEY_PREVIOUS: NEXT });
    const before = await opened(api.runtime);
    const after = { MASTER_KEY: NEXT, MASTER_KEY_PREVIOUS: MASTER_KEY };
    expect(await openedAnew(after)).toEqual(before);
    const { config, log, clock } = api.runtime;
    const command = await openRuntime({ ...config, ...after }, log, 'join', { clock });
    const parts = { ...command, keyFile: null, settleMs: 0 };
    expect(await rotateMaster(parts, context)).toEqual({ keys: 3, endpoints: 2, second_factors: 1 });
    expect(await rotateMaster(parts, context)).toEqual({ keys: 0, endpoints: 0, second_factors: 0 });
    await command.close();
    await api.caughtUp();
    expect(await opened(api.runtime)).toEqual(before);
    expect(await openedAnew({ MASTER_KEY: NEXT, MASTER_KEY_PREVIOUS: '' })).toEqual(before);
    await expect(openedAnew({ MASTER_KEY, MASTER_KEY_PREVIOUS: '' })).rejects.toThrow('MASTER_KEY is not');
  });
});
