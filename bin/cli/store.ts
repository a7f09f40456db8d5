import type { Command } from 'commander';
import { beginEpoch } from '../../commands/epochs/epochs.ts';
import { print } from './print.ts';
import { commandContext, Refused, withFoundation } from './session.ts';

/** `doorplate store new-epoch`. */
export const addStoreCommands = (program: Command): void => {
  program
    .command('store')
    .description('the event store')
    .command('new-epoch')
    .description(
      'a step of every restore, before the service starts: cursors of before go on from the end of the backup',
    )
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) =>
      withFoundation(async ({ store, clock }) => {
        const begun = await beginEpoch(store, commandContext(clock));
        if (!begun.ok) throw new Refused('the event store is empty: restore it first');
        const { epoch_id, after } = begun.value;
        print({ epoch_id, after: after.toString() }, json);
      }),
    );
};
