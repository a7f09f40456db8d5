import { randomUUID } from 'node:crypto';
import { addressOf, leap } from './addresses.ts';
import type { Captures, Clues, LoadPlan, Lookups, Pages, Reveals, Visits } from './load-plan.ts';

/** Returns the request of a number; each number comes once. */
type RequestOf = (number: number) => string | Buffer;

/** An origin of the tracker that captures are made for. */
export const PAGE = 'https://www.example.com';
/** The headers that a browser sends in addition. */
const BROWSER =
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36\r\n' +
  'Accept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n' +
  'Sec-Fetch-Dest: empty\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Site: cross-site\r\n';

export const requestsOf = ({ port, requests }: LoadPlan): RequestOf => {
  const host = `Host: 127.0.0.1:${port}\r\n`;
  switch (requests.of) {
    case 'lookups':
      return lookups(host, requests);
    case 'captures':
      return captures(host, requests);
    case 'reveals':
      return reveals(host, requests);
    case 'pages':
      return pages(host, requests);
    case 'clues':
      return clues(host, requests);
    case 'inserts':
      return inserts(host);
    case 'visits':
      return visits(host, requests);
    default:
      return requests satisfies never;
  }
};

const authorized = (host: string, key: string): string => `${host}Authorization: Bearer ${key}\r\n`;

const lookups = (host: string, { method, keys, address }: Lookups): RequestOf => {
  const headers = keys.map((key) => authorized(host, key));
  const text = (ip: string, key: number): string => {
    if (method === 'GET') return `GET /v1/lookup?ip=${ip} HTTP/1.1\r\n${headers[key]}\r\n`;
    const body = `{"ip":"${ip}"}`;
    const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    return `POST /v1/lookup HTTP/1.1\r\n${headers[key]}${type}\r\n${body}`;
  };
  if ('same' in address) {
    const ready = keys.map((_, key) => Buffer.from(text(address.same, key)));
    return (number) => ready[number % ready.length] as Buffer;
  }
  const { first, among } = address;
  const ip = (number: number) =>
    addressOf(among === undefined ? first + number : leap(first + number, among));
  return (number) => text(ip(number), number % keys.length);
};

/** UUIDs of version 4 that differ only in their last digits, made at no cost. */
const uuids = (): ((number: number) => string) => {
  const start = randomUUID().slice(0, -12);
  return (number) => start + number.toString(16).padStart(12, '0');
};

const captures = (
  host: string,
  { tracker, first, among = Number.POSITIVE_INFINITY }: Captures,
): RequestOf => {
  const [token, visit] = [uuids(), uuids()];
  const head = `POST /tracking/collect HTTP/1.1\r\n${host}${BROWSER}Origin: ${PAGE}\r\nContent-Type: text/plain;charset=UTF-8\r\n`;
  return (number) => {
    const body = `{"tracker_id":"${tracker}","token":"${token(number)}","visit_id":"${visit(number)}","custom":{"plan":"pro","seats":3}}`;
    return `${head}X-Forwarded-For: ${addressOf(first + (number % among))}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
};

const reveals = (host: string, { key, sessions }: Reveals): RequestOf => {
  const headers = authorized(host, key);
  const idempotencyKey = uuids();
  return (number) => {
    const path = `/v1/sessions/${sessions[number % sessions.length]}/reveal`;
    return `POST ${path} HTTP/1.1\r\n${headers}Idempotency-Key: ${idempotencyKey(number)}\r\nContent-Length: 0\r\n\r\n`;
  };
};

const clues = (host: string, { first }: Clues): RequestOf => {
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
    const body = JSON.stringify({ signals: [signal] });
    return `POST /signals HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
};

/** The size of a capture. */
const BODY = JSON.stringify({ text: 'x'.repeat(150) });

const inserts = (host: string): RequestOf => {
  const head = `POST /insert HTTP/1.1\r\n${host}${BROWSER}Content-Type: text/plain;charset=UTF-8\r\n`;
  const text = Buffer.from(`${head}Content-Length: ${BODY.length}\r\n\r\n${BODY}`);
  return () => text;
};

const visits = (host: string, { website, first }: Visits): RequestOf => {
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
  const head = `POST /api/send HTTP/1.1\r\n${host}${BROWSER}Origin: ${PAGE}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  return (number) => `${head}X-Forwarded-For: ${addressOf(first + number)}\r\n\r\n${body}`;
};

const pages = (host: string, { key, paths }: Pages): RequestOf => {
  const headers = authorized(host, key);
  return (number) => `GET ${paths[number % paths.length]} HTTP/1.1\r\n${headers}\r\n`;
};
