/** What differs from run to run in an answer, by a name for each kind. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<id>'],
  [/"(next_cursor|visitor_token)":"[^"]+"/g, '"$1":"<text>"'],
  [/'nonce-[^']+'/g, "'nonce-<text>'"],
  [/"(secret|api_key)":"[^"]+"/g, '"$1":"<secret>"'],
  [/key_[0-9a-f]{24}/g, '<key>'],
  [/_ms":\d+(\.\d+)?/g, '_ms":<duration>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
];

/** The text without ids, times and secrets. */
export const masked = (text: string): string =>
  VARYING.reduce((rest, [pattern, name]) => rest.replace(pattern, name), text);
