import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';

const SETTINGS = [
  'FILE',
  'MAP',
  'URL',
  'TOKEN',
  'TIMEOUT_MS',
  'REQUESTS_PER_SECOND',
  'REQUESTS_PER_DAY',
] as const;
type Setting = (typeof SETTINGS)[number];

const whole = z
  .string()
  .regex(/^[1-9]\d{0,8}$/, 'is not a whole number above 0')
  .transform(Number);
const schema = z.object({
  FILE: z.string().optional(),
  MAP: z.string().optional(),
  URL: z
    .string()
    .refine(
      (url) => URL.canParse(url.replaceAll('{ip}', '1')) && url.includes('{ip}'),
      'is not a URL with {ip} in it',
    )
    .optional(),
  TOKEN: z.string().optional(),
  TIMEOUT_MS: whole.default(5_000),
  REQUESTS_PER_SECOND: whole.nullable().default(null),
  REQUESTS_PER_DAY: whole.nullable().default(null),
});
export type Given = z.output<typeof schema>;

export type Env = Readonly<Record<string, string | undefined>>;

/** The names of a provider's variables. */
export type Variables = Readonly<Record<Setting, string>>;

/** `ipapi-is` → `IPAPI_IS`. */
const prefixOf = (name: string): string =>
  name === 'http' ? 'ENRICHMENT_HTTP' : name.toUpperCase().replaceAll('-', '_');

export const variablesOf = (name: string): Variables =>
  Object.fromEntries(SETTINGS.map((setting) => [setting, `${prefixOf(name)}_${setting}`])) as Record<
    Setting,
    string
  >;

/** Reads and checks a provider's variables one by one. */
export const readGiven = (name: string, env: Env): Given | { readonly problems: string[] } => {
  const variables = variablesOf(name);
  const parsed = schema.safeParse(
    Object.fromEntries(SETTINGS.map((setting) => [setting, env[variables[setting]]])),
  );
  if (!parsed.success) {
    return {
      problems: parsed.error.issues.map((one) => `${variables[one.path[0] as Setting]} ${one.message}`),
    };
  }
  const unreadable = (['FILE', 'MAP'] as const).flatMap((setting) => {
    const file = parsed.data[setting];
    if (file === undefined || canRead(file)) return [];
    return [`${variables[setting]} names a file that cannot be read: ${resolve(file)}`];
  });
  const problems = [...unreadable, ...misspelled(name, env)];
  return problems.length > 0 ? { problems } : parsed.data;
};

const canRead = (file: string): boolean => {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
};

/** A limit under a wrong name would limit nothing and cost money. */
const misspelled = (name: string, env: Env): string[] => {
  const known = Object.values(variablesOf(name));
  return Object.keys(env)
    .filter((one) => one.startsWith(`${prefixOf(name)}_REQUEST`) && !known.includes(one))
    .map(
      (one) =>
        `${one} is no setting of ${name}, which has ${known.filter((k) => k.includes('_REQUESTS_')).join(' and ')}`,
    );
};
