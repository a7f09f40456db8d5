/**
 * The messages of the server's protocol that appends, reads and subscriptions need (streams.proto, gossip.proto and shared.proto of
 * package `event_store.client`, status.proto of `google.rpc`). The numbers are the protocol's, the names ours. What is not listed is
 * skipped. Texts stand for bytes where these hold UTF-8: names of streams, data and metadata.
 */
import protobuf from 'protobufjs';
import type {
  EventMetadata,
  ExpectedRevision,
  Position,
  RecordedEvent,
  Revision,
  Serialised,
} from '../port.ts';
import type { Endpoint } from './connection-string.ts';

const PROTOCOL = `
  syntax = "proto3";
  message Empty {}
  message Uuid { string text = 2; }
  message Stream { string name = 3; }

  message BatchAppendReq {
    Uuid correlationId = 1;
    Options options = 2;
    repeated Event events = 3;
    bool isFinal = 4;
    message Options {
      Stream stream = 1;
      uint64 revision = 2; Empty no_stream = 3; Empty any = 4; Empty stream_exists = 5;
      Duration deadline = 7;
    }
    message Duration { int64 seconds = 1; int32 nanos = 2; }
    message Event { Uuid id = 1; map<string, string> system = 2; string metadata = 3; string data = 4; }
  }
  message BatchAppendResp {
    Uuid correlationId = 1;
    Status error = 2;
    Success success = 3;
    message Success { uint64 revision = 1; AllPosition position = 3; }
    message AllPosition { uint64 commit = 1; }
    message Status { string message = 2; Any details = 3; }
    message Any { string typeUrl = 1; bytes value = 2; }
  }
  message WrongExpectedVersion { uint64 revision = 1; Empty no_stream = 2; }

  message ReadReq {
    Options options = 1;
    message Options {
      OneStream stream = 1; AllStreams all = 2;
      uint32 isBackwards = 3;
      uint64 count = 5; Empty subscription = 6;
      Empty noFilter = 8;
      UuidOption uuids = 9;
      ControlOption control = 10;
    }
    message OneStream { Stream stream = 1; uint64 from = 2; Empty start = 3; Empty end = 4; }
    message AllStreams { Position from = 1; Empty start = 2; Empty end = 3; }
    message Position { uint64 commit = 1; uint64 prepare = 2; }
    message UuidOption { Empty asText = 2; }
    message ControlOption { uint32 version = 1; }
  }
  message ReadResp {
    Content content = 1;
    Empty caughtUp = 8;
    message Content { Event event = 1; }
    message Event {
      Uuid id = 1;
      Stream stream = 2;
      uint64 revision = 3;
      uint64 position = 5;
      map<string, string> system = 6;
      string metadata = 7;
      string data = 8;
    }
  }

  message ClusterInfo {
    repeated Member members = 1;
    message Member { int64 seenAt = 2; uint32 state = 3; bool isAlive = 4; EndPoint http = 5; }
    message EndPoint { string host = 1; uint32 port = 2; }
  }
`;
const { root } = protobuf.parse(PROTOCOL, { keepCase: true });

/** Positions and revisions stay far below 2^53. */
interface Long {
  toNumber(): number;
}

function encoder(name: string): (fields: object) => Uint8Array {
  const type = root.lookupType(name);
  return (fields) => type.encode(fields).finish();
}

/** Makes a function that reads a message. It throws an error for bytes that are no such message. */
function decoder<T>(name: string): (bytes: Buffer) => T {
  const type = root.lookupType(name);
  return (bytes) => {
    const reader = protobuf.Reader.create(bytes);
    const message = type.decode(reader) as unknown as T;
    if (reader.pos !== reader.len) throw new Error('a field is longer than its message');
    return message;
  };
}

const EMPTY = {};
const encodeBatchAppendReq = encoder('BatchAppendReq');
const encodeReadReq = encoder('ReadReq');

/** An append in one final message. `deadlineMs`: after it the server gives up. */
export function encodeAppend(
  correlationId: string,
  stream: string,
  expected: ExpectedRevision,
  events: readonly Serialised[],
  deadlineMs: number,
): Uint8Array {
  const deadline = {
    seconds: Math.floor(deadlineMs / 1_000),
    nanos: Math.floor(deadlineMs % 1_000) * 1_000_000,
  };
  const expectation = typeof expected === 'number' ? { revision: expected } : { [expected]: EMPTY };
  return encodeBatchAppendReq({
    correlationId: { text: correlationId },
    options: { stream: { name: stream }, ...expectation, deadline },
    events: events.map(({ id, type, data, metadata }) => ({
      id: { text: id },
      system: { type, 'content-type': 'application/json' },
      metadata,
      data,
    })),
    isFinal: true,
  });
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

export function encodeRead({ stream, backwards, from, count }: ReadRequest): Uint8Array {
  const at = Number(from);
  const edge = backwards ? { end: EMPTY } : { start: EMPTY };
  return encodeReadReq({
    options: {
      ...(stream === null
        ? { all: from === null ? edge : { from: { commit: at, prepare: at } } }
        : { stream: { stream: { name: stream }, ...(from === null ? edge : { from: at }) } }),
      isBackwards: Number(backwards),
      ...(count === null ? { subscription: EMPTY } : { count }),
      noFilter: EMPTY,
      uuids: { asText: EMPTY },
      // The control messages CaughtUp and FellBehind.
      control: { version: 1 },
    },
  });
}

/** `kind`: the type of the status's details (`WrongExpectedVersion`, `StreamDeleted` …). `actual` null: there is no stream. */
export interface AppendError {
  readonly kind: string;
  readonly message: string;
  readonly actual: Revision | null;
}

export interface AppendAnswer {
  readonly correlationId: string;
  /** null: the append was taken. */
  readonly error: AppendError | null;
  readonly revision: Revision;
  readonly position: Position | null;
}

const decodeBatchAppendResp = decoder<{
  readonly correlationId: { readonly text: string } | null;
  readonly error: { readonly message: string; readonly details: Any | null } | null;
  readonly success: { readonly revision: Long; readonly position: { readonly commit: Long } | null } | null;
}>('BatchAppendResp');
interface Any {
  readonly typeUrl: string;
  readonly value: Buffer;
}
const decodeWrongVersion = decoder<{ readonly revision: Long; readonly no_stream: object | null }>(
  'WrongExpectedVersion',
);

export function decodeAppended(bytes: Buffer): AppendAnswer {
  const { correlationId, error, success } = decodeBatchAppendResp(bytes);
  const position = success?.position;
  return {
    correlationId: correlationId?.text ?? '',
    error: error && { message: error.message, ...reasonOf(error.details) },
    revision: success?.revision.toNumber() ?? 0,
    position: position ? (BigInt(position.commit.toNumber()) as Position) : null,
  };
}

function reasonOf(details: Any | null): Pick<AppendError, 'kind' | 'actual'> {
  const kind = details?.typeUrl.replace(/^.*\./, '') ?? '';
  if (!details || kind !== 'WrongExpectedVersion') return { kind, actual: null };
  const { revision, no_stream } = decodeWrongVersion(details.value);
  return { kind, actual: no_stream ? null : revision.toNumber() };
}

export interface ReadAnswer {
  readonly event: RecordedEvent | null;
  readonly isCaughtUp: boolean;
}

interface ReadEvent {
  readonly id: { readonly text: string } | null;
  readonly stream: { readonly name: string } | null;
  readonly revision: Long;
  readonly position: Long;
  readonly system: Readonly<Record<string, string>>;
  readonly metadata: string;
  readonly data: string;
}
const decodeReadResp = decoder<{
  readonly content: { readonly event: ReadEvent | null } | null;
  readonly caughtUp: object | null;
}>('ReadResp');

export function decodeRead(bytes: Buffer): ReadAnswer {
  const { content, caughtUp } = decodeReadResp(bytes);
  return { event: content?.event ? recordedEvent(content.event) : null, isCaughtUp: caughtUp !== null };
}

function recordedEvent({ id, stream, revision, position, system, metadata, data }: ReadEvent): RecordedEvent {
  const isJson = system['content-type'] === 'application/json';
  return {
    position: BigInt(position.toNumber()) as Position,
    stream: stream?.name ?? '',
    revision: revision.toNumber(),
    id: id?.text ?? '',
    type: system.type ?? '',
    data: isJson ? parsedOrEmpty(data) : {},
    metadata: (isJson && metadata !== '' ? parsedOrEmpty(metadata) : {}) as EventMetadata,
  };
}

/** Other applications may say that bytes are JSON which are not, and `$all` has their events too. */
function parsedOrEmpty(text: string): object {
  try {
    return JSON.parse(text) as object;
  } catch {
    return {};
  }
}

export interface Member extends Endpoint {
  readonly isAlive: boolean;
  readonly isLeader: boolean;
  /** When it was last heard of, in units of 100 ns. */
  readonly seenAt: number;
}

const LEADER = 8;
const decodeClusterInfo = decoder<{
  readonly members: readonly {
    readonly seenAt: Long;
    readonly state: number;
    readonly isAlive: boolean;
    readonly http: Endpoint | null;
  }[];
}>('ClusterInfo');

export const decodeGossip = (bytes: Buffer): Member[] =>
  decodeClusterInfo(bytes).members.map(({ seenAt, state, isAlive, http }) => ({
    host: http?.host ?? '',
    port: http?.port ?? 0,
    isAlive,
    isLeader: state === LEADER,
    seenAt: seenAt.toNumber(),
  }));
