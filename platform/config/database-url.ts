/**
 * One spelling of PostgreSQL's URLs, because the clients of the service read the others differently: a socket in `host=` with its
 * `port=`, an empty host, an IPv6 address, and what PostgreSQL's own environment variables add.
 */

/** PostgreSQL's variables that a URL is completed from, by the part that it leaves out. */
const VARIABLES = {
  user: 'PGUSER',
  password: 'PGPASSWORD',
  host: 'PGHOST',
  port: 'PGPORT',
  database: 'PGDATABASE',
  sslmode: 'PGSSLMODE',
} as const;
type Part = keyof typeof VARIABLES;

export interface DatabaseUrl {
  readonly url: string;
  /** Names of the variables that completed it. */
  readonly variables: readonly string[];
}

/** A scheme, the authority, what follows, and its query. */
const PARTS = /^\w+:\/\/([^/?#]*)((?:[^?#]*)(?:\?([^#]*))?.*)$/s;

/**
 * Whether a login may have been cut off where its password holds an unescaped `/`, `?` or `#`: the rest of the password would be
 * taken for a host or a database, and be shown. An `@` in the query is a login's own where the authority has none.
 */
function mayCutLogin(text: string): boolean {
  const [, authority = '', rest = '', query = ''] = PARTS.exec(text) ?? [];
  const inLogin = query.split('&').filter((one) => /^(?:user|password)=/.test(one));
  const allowed = authority.includes('@') ? 0 : countAt(inLogin.join(''));
  return countAt(rest) > allowed;
}

const countAt = (text: string): number => text.split('@').length - 1;

/**
 * Completes a `postgres://` URL from PostgreSQL's variables, and writes it in one spelling. null: it is no such URL, or it is not
 * clear where its password ends.
 */
export function readDatabaseUrl(text: string, env: NodeJS.ProcessEnv = {}): DatabaseUrl | null {
  if (mayCutLogin(text)) return null;
  // The parser takes no user or port without a host.
  const url =
    URL.parse(text) ?? URL.parse(text.replace(/^(\w+:\/\/(?:[^/?#]*@)?)(?=[:/?]|$)/, '$1localhost'));
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol)) return null;
  const hasHost = URL.canParse(text);
  const { searchParams: parameters } = url;
  const given: Record<Part, string> = {
    user: parameters.get('user') ?? decoded(url.username),
    password: parameters.get('password') ?? decoded(url.password),
    host: parameters.get('host') ?? (hasHost ? decoded(url.hostname).replace(/^\[(.+)\]$/, '$1') : ''),
    port: parameters.get('port') ?? url.port,
    database: parameters.get('dbname') ?? decoded(url.pathname.slice(1)),
    sslmode: parameters.get('sslmode') ?? '',
  };
  const variables: string[] = [];
  for (const [part, name] of Object.entries(VARIABLES) as [Part, string][]) {
    if (given[part] !== '' || !env[name]) continue;
    // As pg reads the variable; it warns of the other names in a URL.
    given[part] =
      part === 'sslmode' ? env[name].replace(/^(prefer|require|verify-ca)$/, 'verify-full') : env[name];
    variables.push(name);
  }
  for (const name of ['user', 'password', 'host', 'port', 'dbname']) parameters.delete(name);
  if (given.port !== '' && !/^\d{1,5}$/.test(given.port)) return null;
  if (given.sslmode !== '') parameters.set('sslmode', given.sslmode);
  return { url: written(url, given), variables };
}

function written({ protocol, searchParams }: URL, given: Record<Part, string>): string {
  const text = encodeURIComponent;
  const password = given.password === '' ? '' : `:${text(given.password)}`;
  const login = given.user === '' && password === '' ? '' : `${text(given.user)}${password}@`;
  const port = given.port === '' ? '' : `:${given.port}`;
  const query = searchParams.size === 0 ? '' : `?${searchParams}`;
  return `${protocol}//${login}${text(given.host || 'localhost')}${port}/${text(given.database)}${query}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
