import { generate } from 'selfsigned';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export interface Authority {
  /** Its own certificate, PEM. */
  readonly cert: string;
  issue(
    hosts: readonly string[],
    validity?: { readonly from: Date; readonly to: Date },
  ): Promise<Certificate>;
}

const EC = { keyType: 'ec', algorithm: 'sha256' } as const;

export const makeAuthority = async (): Promise<Authority> => {
  const own = await generate([{ name: 'commonName', value: 'Authority of a test' }], {
    ...EC,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return {
    cert: own.cert,
    issue: async (hosts, validity) => {
      const issued = await generate([{ name: 'commonName', value: hosts[0] ?? '' }], {
        ...EC,
        ca: { key: own.private, cert: own.cert },
        ...(validity && { notBeforeDate: validity.from, notAfterDate: validity.to }),
        extensions: [
          { name: 'basicConstraints', cA: false },
          { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
          {
            name: 'subjectAltName',
            altNames: hosts.map((host) =>
              /^[\d.]+$|:/.test(host) ? { type: 7, ip: host } : { type: 2, value: host },
            ),
          },
        ],
      });
      return { key: issued.private, cert: issued.cert };
    },
  };
};
