/** What users depend on: its document, the names of its metrics, the command's help. */
import { expect, it, onTestFinished } from 'vitest';
import { documentedRoutes } from '../../bin/api.ts';
import { allCommands, commandLine } from '../../cli/main.ts';
import { openApiDocument } from '../../http/docs/openapi.ts';
import { testDatabase } from '../support/database.ts';
import { startService } from '../support/service.ts';

const sorted = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;

// Both clients are made from the file.
it('serves the OpenAPI document of docs/reference', async () => {
  const document = openApiDocument(documentedRoutes(), { publicUrl: 'https://doorplate.example' });
  await expect(`${JSON.stringify(document, sorted, 1)}\n`).toMatchFileSnapshot(
    '../../docs/reference/openapi.json',
  );
});

it('has unchanged commands and options', async () => {
  const help = allCommands(commandLine()).map((command) => command.configureHelp({ helpWidth: 100 }));
  const texts = help.map((command) => command.helpInformation());
  await expect(texts.join('\n')).toMatchFileSnapshot('commands.txt');
});

it('has unchanged metrics', async () => {
  const database = await testDatabase();
  const service = await startService({ databaseUrl: database.url });
  onTestFinished(async () => {
    await service.remove();
    await database.drop();
  });
  const text = await (await fetch(`http://127.0.0.1:${service.env.OPS_PORT}/metrics`)).text();
  const names = text.split('\n').filter((line) => line.startsWith('# TYPE'));
  await expect(`${names.sort().join('\n')}\n`).toMatchFileSnapshot('metrics.txt');
});
