/** The proxy that the environment names, as curl and Python find it: Node's own fetch does not look for one. */
import * as http from 'node:http';
import * as https from 'node:https';
import { Readable } from 'node:stream';

/**
 * Returns the proxy for a URL by HTTPS_PROXY or HTTP_PROXY and NO_PROXY; null: there is none. Each counts in lower case first, also
 * where it is empty. `*` counts alone.
 */
export const proxyFor = (url: URL, env: Readonly<Record<string, string | undefined>>): string | null => {
  const of = (name: string): string => env[name] ?? env[name.toUpperCase()] ?? '';
  const proxy = of(`${url.protocol.slice(0, -1)}_proxy`);
  const noProxy = of('no_proxy').toLowerCase();
  const excepted = noProxy.split(',').map((one) => one.trim().replace(/^\.+/, ''));
  const isExcepted =
    noProxy === '*' ||
    [url.hostname, url.host].some((host) =>
      excepted.some((one) => one !== '' && (host === one || host.endsWith(`.${one}`))),
    );
  return proxy === '' || isExcepted ? null : /^\w+:\/\//.test(proxy) ? proxy : `http://${proxy}`;
};

/**
 * Makes a fetch for one service: requests with headers, a text body and a signal, which follow no redirect. With a proxy it needs
 * Node 24.5 or later; before that it connects directly.
 */
export const createFetch = (baseUrl: string): typeof globalThis.fetch => {
  const url = new URL(baseUrl);
  const proxy = proxyFor(url, process.env);
  if (proxy === null) return globalThis.fetch;
  const { Agent, request } = url.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, proxyEnv: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy } });
  return (target, { method, headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const options = {
        agent,
        method: method ?? 'GET',
        headers: headers as http.OutgoingHttpHeaders,
        ...(signal ? { signal } : {}),
      };
      request(String(target), options, (answer) => resolve(responseOf(answer)))
        .on('error', reject)
        .end(body);
    });
};

const responseOf = (answer: http.IncomingMessage): Response => {
  const { statusCode: status = 0, headersDistinct } = answer;
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  const hasBody = status !== 204 && status !== 304;
  return new Response(hasBody ? (Readable.toWeb(answer) as ReadableStream) : null, { status, headers });
};
