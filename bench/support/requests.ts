import { randomUUID } from 'node:crypto';
import type { Request } from '../../cli/installation/load.ts';
import { addressOf, leap } from './addresses.ts';
import type { Captures, Clues, LoadPlan, Lookups, Pages, Reveals, Visits } from './load-plan.ts';

/** Returns the request of a number; each number comes once. */
type RequestOf = (number: number) => Request;

/** An origin of the tracker that captures are made for. */
export const PAGE = 'https://www.example.com';
/** The headers that a browser sends in addition. */
const BROWSER = {
  'User-Agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36',
  Accept: '*/*',
  'Accept-Encoding': 'gzip, deflate, br, zstd',
  'Accept-Language': 'en-US,en;q=0.9',
  'Sec-Fetch-Dest': 'empty',
  'Sec-Fetch-Mode': 'cors',
  'Sec-Fetch-Site': 'cross-site',
};
const TEXT = { 'Content-Type': 'text/plain;charset=UTF-8' };
const JSON_BODY = { 'Content-Type': 'application/json' };

export const requestsOf = ({ requests }: LoadPlan): RequestOf => {
  switch (requests.of) {
    case 'lookups':
      return lookups(requests);
    case 'captures':
      return captures(requests);
    case 'reveals':
      return reveals(requests);
    case 'pages':
      return pages(requests);
    case 'clues':
      return clues(requests);
    case 'inserts':
      return () => INSERT;
    case 'visits':
      return visits(requests);
    default:
      return requests satisfies never;
  }
};

/** Writes a request as its bytes, for a generator that sends them as they are. */
export const bytesOf = ({ method, path, headers, body = '' }: Request, port: number): Buffer => {
  const length = method === 'POST' ? { 'Content-Length': Buffer.byteLength(body) } : {};
  const lines = Object.entries({ Host: `127.0.0.1:${port}`, ...headers, ...length });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n${body}`);
};

const authorized = (key: string | undefined) => ({ Authorization: `Bearer ${key}` });

const lookups = ({ method, keys, address }: Lookups): RequestOf => {
  const addressFor = (number: number): string => {
    if ('same' in address) return address.same;
    const { first, among } = address;
    return addressOf(among === undefined ? first + number : leap(first + number, among));
  };
  return (number) => {
    const headers = authorized(keys[number % keys.length]);
    const ip = addressFor(number);
    if (method === 'GET') return { method, path: `/v1/lookup?ip=${ip}`, headers };
    return { method, path: '/v1/lookup', headers: { ...headers, ...JSON_BODY }, body: `{"ip":"${ip}"}` };
  };
};

/** UUIDs of version 4 that differ only in their last digits, made at no cost. */
const uuids = (): ((number: number) => string) => {
  const start = randomUUID().slice(0, -12);
  return (number) => start + number.toString(16).padStart(12, '0');
};

const captures = ({ tracker, first, among = Number.POSITIVE_INFINITY }: Captures): RequestOf => {
  const [token, visit] = [uuids(), uuids()];
  return (number) => ({
    method: 'POST',
    path: '/tracking/collect',
    headers: { ...BROWSER, Origin: PAGE, ...TEXT, 'X-Forwarded-For': addressOf(first + (number % among)) },
    body: `{"tracker_id":"${tracker}","token":"${token(number)}","visit_id":"${visit(number)}","custom":{"plan":"pro","seats":3}}`,
  });
};

const reveals = ({ key, sessions }: Reveals): RequestOf => {
  const idempotencyKey = uuids();
  return (number) => ({
    method: 'POST',
    path: `/v1/sessions/${sessions[number % sessions.length]}/reveal`,
    headers: { ...authorized(key), 'Idempotency-Key': idempotencyKey(number) },
  });
};

const clues = ({ first }: Clues): RequestOf => {
  const [event, page] = [uuids(), uuids()];
  const occurred_at = new Date().toISOString();
  return (number) => {
    const signal = {
      event_id: event(number),
      ip: addressOf(first + number),
      email_domain: `company-${number % 100}.io`,
      evidence: 'submitted',
      site: `www.website-${number % 10}.com`,
      installation_id: `installation-${number % 20}`,
      page_run_id: page(number),
      occurred_at,
    };
    return {
      method: 'POST',
      path: '/signals',
      headers: JSON_BODY,
      body: JSON.stringify({ signals: [signal] }),
    };
  };
};

const INSERT: Request = {
  method: 'POST',
  path: '/insert',
  headers: { ...BROWSER, ...TEXT },
  // The size of a capture.
  body: JSON.stringify({ text: 'x'.repeat(150) }),
};

const visits = ({ website, first }: Visits): RequestOf => {
  const page = {
    hostname: 'www.example.com',
    language: 'en-US',
    screen: '1920x1080',
    title: 'Pricing',
    url: '/pricing',
  };
  const body = JSON.stringify({
    type: 'event',
    payload: { website, ...page, referrer: 'https://www.example.org/' },
  });
  return (number) => ({
    method: 'POST',
    path: '/api/send',
    headers: { ...BROWSER, Origin: PAGE, ...JSON_BODY, 'X-Forwarded-For': addressOf(first + number) },
    body,
  });
};

const pages = ({ key, paths }: Pages): RequestOf => {
  const headers = authorized(key);
  return (number) => ({ method: 'GET', path: paths[number % paths.length] ?? '', headers });
};
