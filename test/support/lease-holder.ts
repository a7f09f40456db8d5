/**
 * A separate process that leads groups as a worker does: prints `{"leads": name, "number"}` and `{"ends": name}` as
 * lines. Arguments: the database's URL, the groups' names separated by commas.
 */
import pino from 'pino';
import { systemClock } from '../../platform/clock/clock.ts';
import { enterLeases } from '../../platform/leases/leases.ts';

const [url = '', names = ''] = process.argv.slice(2);
const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

const leases = await enterLeases({
  url,
  role: 'workers',
  clock: systemClock,
  log: pino({ level: 'silent' }),
});
for (const name of names.split(',')) {
  leases.lead(name, async ({ number }, signal) => {
    print({ leads: name, number });
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    print({ ends: name, number });
  });
}
process.once('SIGTERM', () => void leases.stop().then(() => process.exit(0)));
