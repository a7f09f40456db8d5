/** The checks of files that a start reads. They open the files by the same code, and so report a fault in the same words. */
import { X509Certificate } from 'node:crypto';
import { DAY } from '../../domain/kernel/time.ts';
import type { Config } from '../../platform/config/config.ts';
import { readCountries } from '../../platform/country.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { readText } from '../../platform/text-file.ts';
import { buildChain } from '../../processors/lookup/providers/chain.ts';
import { bad, good, type Result } from './check-result.ts';

const OLD_COUNTRIES_DAYS = 400;

export async function checkCountries({ COUNTRY_MMDB: file }: Config): Promise<Result> {
  const another = 'upgrade Doorplate, or name a newer file: COUNTRY_MMDB=/data/dbip-country-lite.mmdb';
  let countries: Awaited<ReturnType<typeof readCountries>>;
  try {
    countries = await readCountries(file);
  } catch (error) {
    return bad((error as Error).message, another);
  }
  const { name, builtAt } = countries;
  if (builtAt === null) return good(`of an unknown age (${name})`);
  const days = Math.floor((Date.now() - builtAt) / DAY);
  const detail = `${days} ${days === 1 ? 'day' : 'days'} old, of at most ${OLD_COUNTRIES_DAYS} (${name})`;
  return days <= OLD_COUNTRIES_DAYS ? good(detail) : bad(detail, another);
}

/** Opens the providers without asking any. */
export async function checkProviders(config: Config): Promise<Result> {
  const log = createLogger({ level: 'silent', destination: 'stderr' });
  const guard = {
    admit: () => null,
    takeFromBudget: async () => true,
    today: () => '',
    breakerPeriodMs: 0,
    onBreaker: () => undefined,
  };
  try {
    const chain = await buildChain(config, { log, guard });
    await chain.close();
    return good(`${chain.providers.map(({ name }) => name).join(', ')}: their files can be read`);
  } catch (error) {
    return bad((error as Error).message, 'mend the file, or name another (docs/providers.md)');
  }
}

/** Checks a file that the configuration names. A start accepts a file without a certificate, and then trusts nothing more. */
export function checkExtraCa({ WEBHOOK_EXTRA_CA_FILE: file = '' }: Config): Result {
  try {
    const { subject } = new X509Certificate(readText(file));
    return good(`${file} begins with the certificate of ${subject.replaceAll('\n', ', ')}`);
  } catch (error) {
    return bad(
      `WEBHOOK_EXTRA_CA_FILE ${file}: ${(error as Error).message}`,
      'name a file of certificates in PEM',
    );
  }
}
