import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { parseCustom } from '../../write-api/sessions/capture-request.ts';

/** Parses the text as the request parser does. */
const parsed = (text: string) => parseCustom(JSON.parse(text));
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`l${n}`, n]));
const ofBytes = (bytes: number) => {
  const labels = { a: 'x'.repeat(500), b: 'x'.repeat(500), c: 'x'.repeat(500), d: 'x'.repeat(500), e: '' };
  return { ...labels, e: 'x'.repeat(bytes - JSON.stringify(labels).length) };
};

describe('labels', () => {
  test.each<[string, object]>([
    ['none', {}],
    ['each kind of value', { a: 'text', b: 1.5, c: false, d: null, e: '', f: -0 }],
    ['names of all characters', { 'A9_.-': 1, a: 1 }],
    ['a name of 64 characters', { [`a${'b'.repeat(63)}`]: 1 }],
    ['names that objects have of themselves', { toString: 1, hasOwnProperty: 2, length: 3 }],
    ['32 of them', many(32)],
    ['512 characters outside the basic plane', { a: '😀'.repeat(500) }],
    ['2,048 bytes', ofBytes(2_048)],
  ])('are accepted: %s', (_what, labels) => {
    expect(parseCustom(labels)).toEqual(labels);
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['an array', []],
    ['a text', 'a'],
    ['a number', 1],
    ['33 of them', many(33)],
    ['an empty name', { '': 1 }],
    ['a name that begins with a digit', { '1a': 1 }],
    ['a name that begins with an underscore', { _a: 1 }],
    ['a name with a space', { 'a b': 1 }],
    ['a name with a line break at its end', { 'a\n': 1 }],
    ['a letter that is not ASCII', { é: 1 }],
    ['a name of 65 characters', { ['a'.repeat(65)]: 1 }],
    ['a name that is reserved', { constructor: 1 }],
    ['another', { prototype: 1 }],
    ['a nested object', { a: {} }],
    ['a list', { a: [] }],
    ['513 characters', { a: 'x'.repeat(513) }],
    ['513 characters outside the basic plane', { a: '😀'.repeat(513) }],
    ['2,049 bytes', ofBytes(2_049)],
    ['2,048 characters of more bytes', { a: 'é'.repeat(512), b: 'é'.repeat(512) }],
    ['a NUL', { a: 'x\u0000' }],
    ['half a character', { a: '\ud800' }],
  ])('are refused: %s', (_what, labels) => {
    expect(parseCustom(labels)).toBeNull();
  });

  it('are refused for JSON text that has no equal as an object', () => {
    expect(parsed('{"__proto__":1}')).toBeNull();
    expect(parsed('{"__proto__":{"a":1}}')).toBeNull();
    expect(parsed('{"a":1e999}')).toBeNull();
    expect(parsed('{"a":1,"a":2}')).toEqual({ a: 2 });
  });

  it('are returned unchanged or refused', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const labels = parseCustom(value);
        if (labels === null) return;
        expect(labels).toEqual(value);
        expect(Buffer.byteLength(JSON.stringify(labels))).toBeLessThanOrEqual(2_048);
      }),
    );
  });
});
