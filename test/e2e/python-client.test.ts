/** The Python client against the started product, where there is a Python of 3.10 or later. */
import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';

const ROOT = fileURLToPath(new URL('../../clients/python', import.meta.url));
const IS_RECENT = 'import sys; sys.exit(sys.version_info < (3, 10))';
const hasPython = spawnSync('python3', ['-c', IS_RECENT]).status === 0;

/** @returns what it prints. @throws with its output if it fails */
const python = async (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const { stdout } = await promisify(execFile)('python3', ['-B', '-W', 'error', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, PYTHONPATH: 'src', ...env },
    timeout: 60_000,
  });
  return stdout;
};

/** A visit, its reveal under one key twice, usage, the feed's cursor, a refusal and a webhook endpoint. */
const PARTNER = `
import json, os, urllib.request, uuid
from doorplate_client import Client, DoorplateError, new_idempotency_key

client = Client(os.environ["DOORPLATE_URL"], os.environ["DOORPLATE_API_KEY"])
result = client.lookup("8.8.8.8")
assert result["company_found"] and result["company"]["name"], result
tracker = client.trackers.create("a site", ["https://www.example.com"])
for _ in range(3):
    body = {"tracker_id": tracker["id"], "token": str(uuid.uuid4()), "visit_id": str(uuid.uuid4()), "custom": {"plan": "pro"}}
    headers = {"Content-Type": "text/plain", "Origin": "https://www.example.com", "X-Forwarded-For": "8.8.8.8"}
    visit = urllib.request.Request(client._transport.base_url + "/tracking/collect", json.dumps(body).encode(), headers)
    urllib.request.urlopen(visit).close()
feed = client.sessions(tracker_id=tracker["id"], limit=2)
sessions = list(feed)
assert len(sessions) == 3 and sessions[0]["custom"] == {"plan": "pro"}, sessions
assert list(client.sessions(tracker_id=tracker["id"], cursor=feed.cursor)) == []
key = new_idempotency_key()
first, again = [client.reveal(sessions[0]["session_id"], idempotency_key=key).receipt for _ in range(2)]
assert first["reveal_id"] == again["reveal_id"] and first["billable_units"] == 1, (first, again)
assert client.usage()["reveals"]["billable_reveals"] == 1
assert client.trackers.usage(tracker["id"])["totals"]["sessions"] == 3
try:
    client.lookup("10.0.0.1")
    raise AssertionError("a private address was accepted")
except DoorplateError as error:
    assert (error.code, error.outcome, error.status) == ("invalid_ip", "refused", 400), error
try:
    client.reveal(sessions[1]["session_id"], idempotency_key=key)
    raise AssertionError("a key served two sessions")
except DoorplateError as error:
    assert (error.code, error.idempotency_key) == ("idempotency_conflict", key), error
webhook = client.webhooks.create("mine", "https://hooks.example.com/", ["session.created"])
assert webhook["signing_secret"].startswith("whsec_")
assert client.webhooks.update(webhook["id"], enabled=False)["enabled"] is False
assert list(client.webhooks.deliveries(webhook["id"])) == []
assert client.webhooks.delete(webhook["id"])["deleted"] is True
assert client.health() == {"status": "ok"}
print("all as promised")
`;

describe.skipIf(!hasPython)('the Python client', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startServiceOnDatabase({ env: { RETRY_BASE_SECONDS: '0.2' } });
  }, 60_000);
  afterAll(() => service?.remove());

  it('passes its own tests, which need no service', async () => {
    await expect(python(['-m', 'unittest', 'discover', '-s', 'tests'])).resolves.toBe('');
  });

  it('looks up, follows the feed, reveals once and manages webhooks on the started product', async () => {
    const { api_key } = await service.newKey();
    const env = { DOORPLATE_URL: service.url, DOORPLATE_API_KEY: api_key };
    await service.call('POST', '/v1/lookup', { key: api_key, body: { ip: '8.8.8.8' } });
    // The client would poll after 15 seconds.
    await eventually(
      'the address is enriched',
      () => service.call('GET', '/v1/lookup?ip=8.8.8.8', { key: api_key }),
      ({ status }) => status === 200,
    );
    expect(await python(['-c', PARTNER], env)).toBe('all as promised\n');
    expect(await python(['examples/lookup.py', '8.8.8.8'], env)).toMatch(/^8\.8\.8\.8 \w/);
  });
});
