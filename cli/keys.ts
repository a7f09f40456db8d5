import type { Command } from 'commander';
import { keyFileIn } from '../platform/master-key-file.ts';
import { RotationImpossible, rotateMaster } from '../processors/rotate-master.ts';
import { print } from './print.ts';
import { Refused, withSession } from './session.ts';

/** Longer than any request or append, so that running processes have finished writing under the previous key. */
const SETTLE_MS = 15_000;

/** Adds `doorplate keys rotate-master`. */
export const addMasterKeyCommands = (program: Command): void => {
  program
    .command('keys')
    .description('keys that secrets are sealed under at rest')
    .command('rotate-master')
    .description('seal everything under MASTER_KEY, or under a new key that is put into the data folder')
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) =>
      withSession(async (session) => {
        const { config, dataDir, context } = session;
        const keyFile = config.MASTER_KEY ? null : keyFileIn(dataDir);
        if (keyFile !== null) {
          process.stderr.write(
            `doorplate: this takes ${SETTLE_MS / 1_000} s; if it is stopped, run it again\n`,
          );
        }
        const rotating = rotateMaster({ ...session, keyFile, settleMs: SETTLE_MS }, context);
        const resealed = await rotating.catch((error: unknown) => {
          throw error instanceof RotationImpossible ? new Refused(error.message) : error;
        });
        print(resealed, json);
      }),
    );
};
