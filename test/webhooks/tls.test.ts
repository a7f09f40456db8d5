import { describe, expect, it, vi } from 'vitest';
import { type Certificate, makeAuthority } from '../support/certificates.ts';
import { startReceiver } from '../support/receiver.ts';
import {
  authority,
  BODY,
  HEADERS,
  NAME,
  outcome,
  post,
  receiver,
  senderTo,
  undoing,
} from '../support/sending.ts';

describe('a TLS handshake', () => {
  const presenting = async (own: Certificate) => {
    const target = await startReceiver({ tls: own });
    undoing.push(target.close);
    return target;
  };

  it('is refused without a trusted authority', async () => {
    const target = await presenting(await (await makeAuthority()).issue([NAME]));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
    expect(target.requests).toEqual([]);
  });

  it('is accepted from a test authority only where that authority is trusted', async () => {
    const target = await receiver();
    expect(await post(senderTo(target, { extraCa: null }), target)).toEqual(outcome(null, 'tls'));
  });

  it('is refused when the certificate names another host', async () => {
    const target = await presenting(await authority.issue(['other.example', '127.0.0.1']));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });

  it("is refused when the certificate does not include the URL's IP address", async () => {
    const target = await presenting(await authority.issue([NAME]));
    const url = `https://127.0.0.1:${target.port}/`;
    expect(
      await senderTo(target).send({ url, headers: HEADERS, body: BODY, partner_id: 'a partner' }),
    ).toEqual(outcome(null, 'tls'));
  });

  it('is refused when the certificate has expired', async () => {
    const validity = { from: new Date('2020-01-01'), to: new Date('2020-02-01') };
    const target = await presenting(await authority.issue([NAME], validity));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });

  it('is checked whatever the environment variables say', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    undoing.push(() => vi.unstubAllEnvs());
    const target = await presenting(await (await makeAuthority()).issue([NAME]));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });
});
