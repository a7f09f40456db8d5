import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { presetNames } from '../../platform/config/provider-settings.ts';
import { databasePresets, parsePreset } from '../../processors/lookup/providers/mapping.ts';

const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8');

describe('docs/providers.md', () => {
  it('lists every type of database that has a mapping', () => {
    const types = databasePresets().flatMap(({ database_types = [] }) => database_types);
    expect(types.length).toBeGreaterThan(15);
    // Written in full after another type of its kind.
    const listed = page.replace('`…_plus`', '`ipinfo bundle_location_plus`');
    expect(types.filter((type) => !listed.includes(`\`${type}\``))).toEqual([]);
  });

  it('lists every preset with the variable of its token', () => {
    for (const name of presetNames()) {
      expect(page).toContain(`| \`${name}\` | \`${name.toUpperCase().replaceAll('-', '_')}_TOKEN\``);
    }
  });

  it('shows a mapping that can be read', () => {
    const [, example = ''] = /```json\n(.+?)```/s.exec(page) ?? [];
    expect(Object.keys(parsePreset(example).mapping)).toHaveLength(5);
  });
});
