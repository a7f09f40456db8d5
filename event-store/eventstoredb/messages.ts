/**
 * The messages of the server's protocol that appends, reads and subscriptions need (streams.proto and gossip.proto, package
 * `event_store.client`). Numbers are those of fields. Unknown fields are skipped.
 */
import protobuf from 'protobufjs/minimal.js';
import type {
  EventMetadata,
  ExpectedRevision,
  Position,
  RecordedEvent,
  Revision,
  Serialised,
} from '../port.ts';
import type { Endpoint } from './connection-string.ts';

const { Reader, Writer } = protobuf;
type Reader = protobuf.Reader;
type Writer = protobuf.Writer;

/** The number of a field, and its value: a text, a number, or the fields of a message. */
type Field = readonly [number, string | number | readonly Field[]];

function writeFields(writer: Writer, fields: readonly Field[]): Writer {
  for (const [number, value] of fields) {
    if (typeof value === 'number') writer.uint32(number << 3).uint64(value);
    else if (typeof value === 'string') writer.uint32((number << 3) | 2).string(value);
    else writeFields(writer.uint32((number << 3) | 2).fork(), value).ldelim();
  }
  return writer;
}
const encode = (fields: readonly Field[]): Uint8Array => writeFields(Writer.create(), fields).finish();

const EMPTY: readonly Field[] = [];
/** UUID { string = 2 } */
const uuid = (id: string): readonly Field[] => [[2, id]];
/** StreamIdentifier { stream_name = 3 }: a name in UTF-8 has the form of a text. */
const streamName = (stream: string): readonly Field[] => [[3, stream]];
/** An entry of a map. */
const entry = (key: string, value: string): readonly Field[] => [
  [1, key],
  [2, value],
];

/** `any`, `no_stream` and `stream_exists` are empty messages of these numbers in BatchAppendReq.Options. */
const EXPECTATIONS = { no_stream: 3, any: 4, stream_exists: 5 } as const;

/** An append in one final BatchAppendReq. `deadlineMs`: after it the server gives up. */
export function encodeAppend(
  correlationId: string,
  stream: string,
  expected: ExpectedRevision,
  events: readonly Serialised[],
  deadlineMs: number,
): Uint8Array {
  // google.protobuf.Duration { seconds = 1, nanos = 2 }
  const deadline: readonly Field[] = [
    [1, Math.floor(deadlineMs / 1_000)],
    [2, Math.floor(deadlineMs % 1_000) * 1_000_000],
  ];
  const expectation: Field = typeof expected === 'number' ? [2, expected] : [EXPECTATIONS[expected], EMPTY];
  const proposed = ({ id, type, data, metadata }: Serialised): readonly Field[] => [
    [1, uuid(id)],
    [2, entry('type', type)],
    [2, entry('content-type', 'application/json')],
    [3, metadata],
    [4, data],
  ];
  return encode([
    [1, uuid(correlationId)],
    [2, [[1, streamName(stream)], expectation, [7, deadline]]],
    ...events.map((event): Field => [3, proposed(event)]),
    [4, 1],
  ]);
}

export interface ReadRequest {
  /** null: `$all`. */
  readonly stream: string | null;
  readonly backwards: boolean;
  /** Revision, or commit position, at which to begin; null: the start, or the end of a backwards read. */
  readonly from: number | bigint | null;
  /** null: a subscription. */
  readonly count: number | null;
}

/** ReadReq { options = 1 } */
export function encodeRead({ stream, backwards, from, count }: ReadRequest): Uint8Array {
  const at = from === null ? null : Number(from);
  const position: Field =
    at === null
      ? [backwards ? 3 : 2, EMPTY]
      : [
          1,
          [
            [1, at],
            [2, at],
          ],
        ];
  const revision: Field = at === null ? [backwards ? 4 : 3, EMPTY] : [2, at];
  const options: readonly Field[] = [
    stream === null ? [2, [position]] : [1, [[1, streamName(stream)], revision]],
    [3, Number(backwards)],
    count === null ? [6, EMPTY] : [5, count],
    [8, EMPTY],
    [9, [[2, EMPTY]]],
    // Version 1 of the control messages: CaughtUp and FellBehind.
    [10, [[1, 1]]],
  ];
  return encode([[1, options]]);
}

/** Reads a varint of up to 64 bits. Positions and revisions stay far below 2^53. */
function uint64(reader: Reader): number {
  let value = 0;
  for (let factor = 1, read = 0; read < 10; factor *= 128, read += 1) {
    if (reader.pos >= reader.len) break;
    const byte = reader.buf[reader.pos] as number;
    reader.pos += 1;
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
  throw new Error('a number does not end');
}

/** Reads the value of a field, by its number. */
type Fields = Readonly<Record<number, () => unknown>>;

/** Reads the fields of a message up to `end`; others are skipped. */
function fields(reader: Reader, end: number, read: Fields): void {
  if (end > reader.len || end < reader.pos) throw new Error('a message is longer than what holds it');
  while (reader.pos < end) {
    const tag = reader.uint32();
    const value = read[tag >>> 3];
    if (value === undefined) reader.skipType(tag & 7);
    else value();
  }
  if (reader.pos !== end) throw new Error('a field is longer than its message');
}

/** Reads a nested message, whose length comes first. */
const message = (reader: Reader, read: Fields): void => fields(reader, reader.uint32() + reader.pos, read);

/** Reads a text: Node decodes it several times faster than `protobufjs`. */
const utf8 = (reader: Reader): string => {
  const bytes = reader.bytes();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
};

/** The text in field `number` of a nested message. */
function textIn(reader: Reader, number: number): string {
  let text = '';
  message(reader, { [number]: () => (text = utf8(reader)) });
  return text;
}

export type AppendAnswer = { readonly correlationId: string } & (
  | { readonly revision: Revision; readonly position: Position | null }
  | { readonly error: AppendError }
);
/** `kind`: the type of the status's details (`WrongExpectedVersion`, `StreamDeleted` …). `actual` null: there is no stream. */
export interface AppendError {
  readonly kind: string;
  readonly message: string;
  readonly actual: Revision | null;
}

/** BatchAppendResp. @throws Error, as all that decode here, for bytes that are no such message */
export function decodeAppended(bytes: Uint8Array): AppendAnswer {
  const reader = Reader.create(bytes);
  let correlationId = '';
  let revision = 0;
  let position: Position | null = null;
  let error: AppendError | null = null;
  const success: Fields = {
    1: () => (revision = uint64(reader)),
    3: () => message(reader, { 1: () => (position = BigInt(uint64(reader)) as Position) }),
  };
  fields(reader, reader.len, {
    1: () => (correlationId = textIn(reader, 2)),
    2: () => (error = statusIn(reader)),
    3: () => message(reader, success),
  });
  return error === null ? { correlationId, revision, position } : { correlationId, error };
}

/** google.rpc.Status { code = 1, message = 2, details = 3: Any { type_url = 1, value = 2 } } */
function statusIn(reader: Reader): AppendError {
  let [said, url] = ['', ''];
  let details: Uint8Array = new Uint8Array();
  let actual: Revision | null = null;
  const any: Fields = { 1: () => (url = utf8(reader)), 2: () => (details = reader.bytes()) };
  message(reader, { 2: () => (said = utf8(reader)), 3: () => message(reader, any) });
  const kind = url.slice(url.lastIndexOf('.') + 1);
  const inner = Reader.create(details);
  if (kind === 'WrongExpectedVersion') fields(inner, inner.len, { 1: () => (actual = uint64(inner)) });
  return { kind, message: said, actual };
}

export interface ReadAnswer {
  readonly event: RecordedEvent | null;
  readonly isCaughtUp: boolean;
}

/** ReadResp { event = 1: ReadEvent { event = 1 }, caught_up = 8 }; links are not resolved. */
export function decodeRead(bytes: Uint8Array): ReadAnswer {
  const reader = Reader.create(bytes);
  let event: RecordedEvent | null = null;
  let isCaughtUp = false;
  const readEvent: Fields = { 1: () => (event = recordedEvent(reader)) };
  fields(reader, reader.len, {
    1: () => message(reader, readEvent),
    8: () => {
      isCaughtUp = true;
      message(reader, {});
    },
  });
  return { event, isCaughtUp };
}

function recordedEvent(reader: Reader): RecordedEvent {
  let [id, stream, metadata, data, key, value] = ['', '', '', '', '', ''];
  let [revision, position] = [0, 0];
  const properties: Record<string, string> = {};
  const entry: Fields = { 1: () => (key = utf8(reader)), 2: () => (value = utf8(reader)) };
  message(reader, {
    1: () => (id = textIn(reader, 2)),
    2: () => (stream = textIn(reader, 3)),
    3: () => (revision = uint64(reader)),
    5: () => (position = uint64(reader)),
    6: () => {
      message(reader, entry);
      properties[key] = value;
    },
    7: () => (metadata = utf8(reader)),
    8: () => (data = utf8(reader)),
  });
  const { type = '', 'content-type': contentType } = properties;
  const isJson = contentType === 'application/json';
  return {
    position: BigInt(position) as Position,
    stream,
    revision,
    id,
    type,
    data: isJson ? (JSON.parse(data) as object) : {},
    metadata: (isJson && metadata !== '' ? JSON.parse(metadata) : {}) as EventMetadata,
  };
}

export interface Member extends Endpoint {
  readonly isAlive: boolean;
  readonly isLeader: boolean;
}

const LEADER = 8;

/** ClusterInfo { members = 1: MemberInfo { state = 3, is_alive = 4, http_end_point = 5: { address = 1, port = 2 } } } */
export function decodeGossip(bytes: Uint8Array): Member[] {
  const reader = Reader.create(bytes);
  const members: Member[] = [];
  const member = (): void => {
    let [host, port, state, isAlive] = ['', 0, 0, false];
    const endpoint: Fields = { 1: () => (host = utf8(reader)), 2: () => (port = reader.uint32()) };
    message(reader, {
      3: () => (state = reader.uint32()),
      4: () => (isAlive = reader.bool()),
      5: () => message(reader, endpoint),
    });
    members.push({ host, port, isAlive, isLeader: state === LEADER });
  };
  fields(reader, reader.len, { 1: member });
  return members;
}
