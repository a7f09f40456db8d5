import type { Command } from 'commander';
import { parsePublicAddress } from '../domain/kernel/address.ts';
import { readSaved } from '../queries/lookup/lookups.ts';
import { print } from './print.ts';
import { Refused, withSession } from './session.ts';

/** Adds `doorplate lookup IP`, which prints the saved result with its providers and starts no enrichment. */
export const addLookupCommand = (program: Command): void => {
  program
    .command('lookup <ip>')
    .description('what is saved of an address, and which providers said it')
    .option('--json', 'print JSON', false)
    .action((text: string, { json }: { json: boolean }) => {
      const ip = parsePublicAddress(text);
      if (ip === null) throw new Refused(`invalid_ip: ${text}`);
      return withSession(async ({ pool, store, projected }) => {
        await projected(await store.head(), 'lookups');
        const saved = await readSaved(pool, ip);
        if (!saved) throw new Refused(`nothing is saved of ${ip}: POST /v1/lookup requests it`);
        print(saved, json);
      });
    });
};
