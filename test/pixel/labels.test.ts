import { describe, expect, test } from 'vitest';
import { parseLabels } from '../../web/pixel/labels.ts';
import { parseCustom } from '../../write-api/sessions/capture-request.ts';

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, at]));
/** Labels whose serialisation has this many bytes: the names, quotes, colons and commas of four take 29. */
const ofBytes = (bytes: number) =>
  `{"a":"${'a'.repeat(512)}","b":"${'a'.repeat(512)}","c":"${'a'.repeat(512)}","d":"${'a'.repeat(bytes - 1_565)}"}`;

/** The service's decision on the same text: a page must be warned of exactly what would be refused. */
const parsedByService = (text: string): unknown => {
  try {
    return parseCustom(JSON.parse(text.trim() || '{}'));
  } catch {
    return null;
  }
};

describe('labels', () => {
  test.each<[string, string, object]>([
    ['nothing', '', {}],
    ['blanks', ' \n', {}],
    ['no properties', '{}', {}],
    [
      'every kind of value',
      '{"a":"é","b":1.5,"c":true,"d":null,"e":-0.1e3}',
      { a: 'é', b: 1.5, c: true, d: null, e: -100 },
    ],
    ['every character of a name', '{"aZ09_.-":1}', { 'aZ09_.-': 1 }],
    ['a name of 64 characters', `{"${'n'.repeat(64)}":1}`, { ['n'.repeat(64)]: 1 }],
    [
      'names that only begin like reserved ones',
      '{"constructors":1,"prototype_":2}',
      { constructors: 1, prototype_: 2 },
    ],
    ['512 characters of two UTF-16 units', `{"a":"${'😀'.repeat(500)}"}`, { a: '😀'.repeat(500) }],
    ['32 properties', JSON.stringify(many(32)), many(32)],
    ['2,048 bytes', ofBytes(2_048), JSON.parse(ofBytes(2_048))],
    ['blanks that its serialisation has not', `{"a":1${' '.repeat(3_000)}}`, { a: 1 }],
  ])('may be %s', (_what, text, labels) => {
    expect([parseLabels(text), parsedByService(text)]).toEqual([labels, labels]);
  });

  test.each<[string, string]>([
    ['no JSON', '{plan: 1}'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"a"'],
    ['a nested object', '{"a":{}}'],
    ['a nested array', '{"a":[1]}'],
    ['33 properties', JSON.stringify(many(33))],
    ['an empty name', '{"":1}'],
    ['a name that begins with a digit', '{"1a":1}'],
    ['a name that begins with an underscore', '{"__proto__":1}'],
    ['a name with a blank', '{"a b":1}'],
    ['a name that ends with a line feed', '{"a\\n":1}'],
    ['a name with a letter beyond ASCII', '{"é":1}'],
    ['a name of 65 characters', `{"${'n'.repeat(65)}":1}`],
    ['the name constructor', '{"constructor":1}'],
    ['the name prototype', '{"prototype":1}'],
    ['a string of 513 characters', `{"a":"${'a'.repeat(513)}"}`],
    ['a number that is none', '{"a":1e999}'],
    ['a NUL', '{"a":"\\u0000"}'],
    ['a lone high surrogate', '{"a":"\\ud83d"}'],
    ['a lone low surrogate', '{"a":"x\\ude00x"}'],
    ['2,049 bytes', ofBytes(2_049)],
    ['2,048 characters of more bytes', ofBytes(2_048).replace(/a"}$/, 'é"}')],
  ])('may not be %s', (_what, text) => {
    expect([parseLabels(text), parsedByService(text)]).toEqual([null, null]);
  });
});
