import { describe, expect, it } from 'vitest';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import { fieldTable } from './field-table.ts';

/**
 * The stored names and shapes are a storage format: this test fails when one changes. A new shape is a new version of
 * the event, and old versions are read for ever; `npx vitest run test/docs -u` then rewrites the page.
 */
describe('docs/reference/events.md', () => {
  it('lists every stored event as the code defines it', async () => {
    const streams = eventCatalogue.map(({ stream, about, lives, events }) => {
      const shapes = Object.entries(events).map(([name, schema]) => `### ${name}\n\n${fieldTable(schema)}`);
      return `## \`${stream}\`\n\n${about} Lives: ${lives}.\n\n${shapes.join('\n\n')}`;
    });
    const page = `# Events

What the event store holds, by kind of stream. Names and shapes are a storage format: a test compares this page with the
code. Fields within fields have dotted names, \`[]\` are the items of an array and \`*\` the values of an object.
\`doorplate events\` shows personal fields on request, and secret ones never.

Every event's metadata has \`$correlationId\` (the request, or the run of a processor, that set it off), \`$causationId\`
(what directly led to it), \`at\` (ISO 8601, by the process's clock) and, where they apply, \`partner_id\`, \`key_id\`,
\`user_id\`, \`expires_at\` and \`traceparent\` (the span that appended it, while traces are on).

${streams.join('\n\n')}
`;
    await expect(page).toMatchFileSnapshot('../../docs/reference/events.md');
  });

  it('lists every event under a unique name with its context and version', () => {
    const names = eventCatalogue.flatMap(({ events }) => Object.keys(events));
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z]+\.[A-Z][A-Za-z]+\.v\d+$/);
  });
});
