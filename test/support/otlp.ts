/** A receiver of traces (OTLP over HTTP, protobuf) that decodes the fields used by tests. */
import { type Received, startReceiver } from './receiver.ts';

export interface SeenSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** '' where it has none. */
  readonly parentId: string;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly links: readonly string[];
  readonly failed: boolean;
}

export const startOtlpReceiver = async () => {
  const receiver = await startReceiver({
    answer: (_request, response) => void response.writeHead(200).end(),
  });
  return {
    url: `http://127.0.0.1:${receiver.port}`,
    requests: receiver.requests as readonly Received[],
    spans: (): SeenSpan[] => receiver.requests.flatMap(({ body }) => spansIn(body)),
    close: receiver.close,
  };
};

interface Field {
  readonly number: number;
  readonly bytes: Buffer;
  readonly value: number;
}

/** The fields of a message, in the wire format of Protocol Buffers. */
const fieldsOf = (message: Buffer): Field[] => {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
    }
  };
  while (at < message.length) {
    const tag = varint();
    const [number, wire] = [tag >> 3, tag & 7];
    const value = wire === 0 ? varint() : 0;
    const length = wire === 2 ? varint() : wire === 1 ? 8 : wire === 5 ? 4 : 0;
    fields.push({ number, value, bytes: message.subarray(at, at + length) });
    at += length;
  }
  return fields;
};

const all = (message: Buffer, number: number): Buffer[] =>
  fieldsOf(message).flatMap((field) => (field.number === number ? [field.bytes] : []));
const first = (message: Buffer, number: number): Buffer => all(message, number)[0] ?? Buffer.alloc(0);

const attributesIn = (message: Buffer, number: number): Record<string, string | number | boolean> =>
  Object.fromEntries(
    all(message, number).map((pair) => {
      const [value] = fieldsOf(first(pair, 2));
      const read =
        value === undefined || value.number === 1
          ? (value?.bytes.toString() ?? '')
          : value.number === 2
            ? value.value === 1
            : value.number === 3
              ? value.value
              : value.bytes.readDoubleLE();
      return [first(pair, 1).toString(), read];
    }),
  );

/** Field numbers of opentelemetry-proto's trace.proto. */
const spansIn = (request: Buffer): SeenSpan[] =>
  all(request, 1).flatMap((ofResource) => {
    const service = String(attributesIn(first(ofResource, 1), 1)['service.name']);
    return all(ofResource, 2)
      .flatMap((ofScope) => all(ofScope, 2))
      .map((span) => ({
        service,
        name: first(span, 5).toString(),
        traceId: first(span, 1).toString('hex'),
        spanId: first(span, 2).toString('hex'),
        parentId: first(span, 4).toString('hex'),
        attributes: attributesIn(span, 9),
        links: all(span, 13).map((link) => first(link, 1).toString('hex')),
        failed: fieldsOf(first(span, 15)).some(({ number, value }) => number === 3 && value === 2),
      }));
  });
