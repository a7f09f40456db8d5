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
  for (let factor = 1, read = 0; read < 10 && reader.pos < reader.len; factor *= 128, read += 1) {
    const byte = reader.buf[reader.pos] as number;
    reader.pos += 1;
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
  throw new Error('a number does not end');
}

/** Reads a length, and returns where that many bytes end. */
function endIn(reader: Reader): number {
  const length = reader.uint32();
  if (length > reader.len - reader.pos) throw new Error('a field is longer than what holds it');
  return reader.pos + length;
}

/** Reads a text: Node decodes it several times faster than `protobufjs`. */
function utf8(reader: Reader): string {
  const end = endIn(reader);
  const text = (reader.buf as Buffer).toString('utf8', reader.pos, end);
  reader.pos = end;
  return text;
}

/** How the fields of a message are read into what comes of it, by their numbers. */
type Fields<T> = Readonly<Record<number, (reader: Reader, into: T) => unknown>>;

/** Reads the fields of a message up to `end`; others are skipped. */
function fields<T>(reader: Reader, end: number, read: Fields<T>, into: T): T {
  while (reader.pos < end) {
    const tag = reader.uint32();
    const readField = read[tag >>> 3];
    if (readField === undefined) reader.skipType(tag & 7);
    else readField(reader, into);
  }
  if (reader.pos !== end) throw new Error('a field is longer than its message');
  return into;
}

/** Reads a nested message, whose length comes first. */
const message = <T>(reader: Reader, read: Fields<T>, into: T): T => fields(reader, endIn(reader), read, into);

/** @throws Error for bytes that are no such message */
function decode<T>(bytes: Buffer, read: Fields<T>, into: T): T {
  const reader = Reader.create(bytes);
  return fields(reader, reader.len, read, into);
}

const UUID: Fields<{ text: string }> = { 2: (reader, into) => (into.text = utf8(reader)) };
const STREAM_IDENTIFIER: Fields<{ text: string }> = { 3: (reader, into) => (into.text = utf8(reader)) };
const textIn = (reader: Reader, read: Fields<{ text: string }>): string =>
  message(reader, read, { text: '' }).text;

/** `kind`: the type of the status's details (`WrongExpectedVersion`, `StreamDeleted` …). `actual` null: there is no stream. */
export interface AppendError {
  kind: string;
  message: string;
  actual: Revision | null;
}

export interface AppendAnswer {
  correlationId: string;
  /** null: the append was taken. */
  error: AppendError | null;
  revision: Revision;
  position: Position | null;
}

const WRONG_EXPECTED_VERSION: Fields<AppendError> = {
  1: (reader, error) => (error.actual = uint64(reader)),
};
/** google.protobuf.Any { type_url = 1, value = 2 } */
const DETAILS: Fields<AppendError> = {
  1: (reader, error) => (error.kind = utf8(reader).replace(/^.*\./, '')),
  2: (reader, error) =>
    message(reader, error.kind === 'WrongExpectedVersion' ? WRONG_EXPECTED_VERSION : {}, error),
};
/** google.rpc.Status */
const STATUS: Fields<AppendError> = {
  2: (reader, error) => (error.message = utf8(reader)),
  3: (reader, error) => message(reader, DETAILS, error),
};
const ALL_STREAM_POSITION: Fields<AppendAnswer> = {
  1: (reader, answer) => (answer.position = BigInt(uint64(reader)) as Position),
};
const SUCCESS: Fields<AppendAnswer> = {
  1: (reader, answer) => (answer.revision = uint64(reader)),
  3: (reader, answer) => message(reader, ALL_STREAM_POSITION, answer),
};
const BATCH_APPEND_RESP: Fields<AppendAnswer> = {
  1: (reader, answer) => (answer.correlationId = textIn(reader, UUID)),
  2: (reader, answer) => (answer.error = message(reader, STATUS, { kind: '', message: '', actual: null })),
  3: (reader, answer) => message(reader, SUCCESS, answer),
};

export const decodeAppended = (bytes: Buffer): AppendAnswer =>
  decode(bytes, BATCH_APPEND_RESP, { correlationId: '', error: null, revision: 0, position: null });

export interface ReadAnswer {
  event: RecordedEvent | null;
  isCaughtUp: boolean;
}

interface Draft {
  id: string;
  stream: string;
  revision: number;
  position: number;
  type: string;
  isJson: boolean;
  data: string;
  metadata: string;
}

const ENTRY: Fields<{ key: string; value: string }> = {
  1: (reader, entry) => (entry.key = utf8(reader)),
  2: (reader, entry) => (entry.value = utf8(reader)),
};
const RECORDED_EVENT: Fields<Draft> = {
  1: (reader, draft) => (draft.id = textIn(reader, UUID)),
  2: (reader, draft) => (draft.stream = textIn(reader, STREAM_IDENTIFIER)),
  3: (reader, draft) => (draft.revision = uint64(reader)),
  5: (reader, draft) => (draft.position = uint64(reader)),
  6: (reader, draft) => {
    const { key, value } = message(reader, ENTRY, { key: '', value: '' });
    if (key === 'type') draft.type = value;
    else if (key === 'content-type') draft.isJson = value === 'application/json';
  },
  7: (reader, draft) => (draft.metadata = utf8(reader)),
  8: (reader, draft) => (draft.data = utf8(reader)),
};
/** Links are not resolved. */
const READ_EVENT: Fields<ReadAnswer> = {
  1: (reader, answer) => (answer.event = recordedEvent(reader)),
};
const READ_RESP: Fields<ReadAnswer> = {
  1: (reader, answer) => message(reader, READ_EVENT, answer),
  8: (reader, answer) => {
    answer.isCaughtUp = true;
    message(reader, {}, null);
  },
};

export const decodeRead = (bytes: Buffer): ReadAnswer =>
  decode(bytes, READ_RESP, { event: null, isCaughtUp: false });

function recordedEvent(reader: Reader): RecordedEvent {
  const draft: Draft = {
    ...{ id: '', stream: '', revision: 0, position: 0 },
    ...{ type: '', isJson: false, data: '', metadata: '' },
  };
  const { isJson, data, metadata, position, id, stream, revision, type } = message(
    reader,
    RECORDED_EVENT,
    draft,
  );
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
  /** When it was last heard of, in units of 100 ns. */
  readonly seenAt: number;
}

const LEADER = 8;

interface MemberInfo {
  host: string;
  port: number;
  seenAt: number;
  state: number;
  isAlive: boolean;
}
const END_POINT: Fields<MemberInfo> = {
  1: (reader, info) => (info.host = utf8(reader)),
  2: (reader, info) => (info.port = reader.uint32()),
};
const MEMBER_INFO: Fields<MemberInfo> = {
  2: (reader, info) => (info.seenAt = uint64(reader)),
  3: (reader, info) => (info.state = reader.uint32()),
  4: (reader, info) => (info.isAlive = reader.bool()),
  5: (reader, info) => message(reader, END_POINT, info),
};
const CLUSTER_INFO: Fields<Member[]> = {
  1: (reader, members) => {
    const none: MemberInfo = { host: '', port: 0, seenAt: 0, state: 0, isAlive: false };
    const { state, ...info } = message(reader, MEMBER_INFO, none);
    members.push({ ...info, isLeader: state === LEADER });
  },
};
export const decodeGossip = (bytes: Buffer): Member[] => decode(bytes, CLUSTER_INFO, []);
