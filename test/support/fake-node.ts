import { once } from 'node:events';
import {
  constants,
  createSecureServer,
  createServer,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import status from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { createUnframer, framed } from '../../event-store/eventstoredb/grpc.ts';

/** A call that a node has received a message of. */
export interface FakeCall {
  /** `BatchAppend`, `Read`, of streams or of gossip as `Gossip`. */
  readonly method: 'BatchAppend' | 'Read' | 'Gossip';
  readonly message: Buffer;
  readonly headers: IncomingHttpHeaders;
  /** Sends a message. */
  reply(message: Uint8Array): void;
  /** Sends bytes as they are. */
  write(bytes: Buffer): void;
  /** Ends the call with a status of gRPC. */
  end(status?: number, trailers?: Readonly<Record<string, string>>): void;
  readonly stream: ServerHttp2Stream;
}

export interface FakeNode {
  readonly port: number;
  /** How many connections clients have opened. */
  connections(): number;
  /** Says to every client that the connection closes. */
  goAway(): void;
  /** Breaks every connection. */
  cut(): void;
  close(): Promise<void>;
}

/** An HTTP/2 server in the place of a node: a test answers each message of a call. `tls`: with certificates. */
export const startFakeNode = async (
  answer: (call: FakeCall) => void,
  tls?: SecureServerOptions,
  host = '127.0.0.1',
): Promise<FakeNode> => {
  const sessions = new Set<ServerHttp2Session>();
  let opened = 0;
  const server = tls ? createSecureServer(tls) : createServer({ maxSessionMemory: 1_000 });
  server.on('session', (session) => {
    opened += 1;
    sessions.add(session);
    session.on('error', () => undefined);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    const path = String(headers[':path']);
    const method = path.includes('gossip') ? 'Gossip' : (path.split('/').at(-1) as FakeCall['method']);
    let trailers: Record<string, string> = {};
    let isAnswered = false;
    const open = (): void => {
      if (!isAnswered) stream.respond({ ':status': 200 }, { waitForTrailers: true });
      isAnswered = true;
    };
    stream.on('error', () => undefined);
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    const write = (bytes: Buffer): void => {
      if (stream.destroyed) return;
      open();
      stream.write(bytes);
    };
    const end: FakeCall['end'] = (status = 0, given = {}) => {
      if (stream.destroyed) return;
      trailers = { 'grpc-status': String(status), ...given };
      open();
      stream.end();
    };
    const { take } = createUnframer((message) =>
      answer({ method, message, headers, reply: (bytes) => write(framed(bytes)), write, end, stream }),
    );
    stream.on('data', take);
  });
  server.listen(0, host);
  await once(server, 'listening');
  const cut = (): void => {
    for (const session of sessions) session.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => opened,
    goAway: () => {
      for (const session of sessions) session.goaway(constants.NGHTTP2_NO_ERROR);
    },
    cut,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
};

const uuid = (id: string) => {
  const made = new shared.UUID();
  made.setString(id);
  return made;
};

/** The answer of a node that has taken an append. */
export const appendedAnswer = (request: Uint8Array, revision = 0): Uint8Array => {
  const asked = streams.BatchAppendReq.deserializeBinary(request);
  const answer = new streams.BatchAppendResp();
  answer.setCorrelationId(asked.getCorrelationId());
  const success = new streams.BatchAppendResp.Success();
  success.setCurrentRevision(String(revision));
  const position = new shared.AllStreamPosition();
  position.setCommitPosition('70');
  position.setPreparePosition('70');
  success.setPosition(position);
  answer.setSuccess(success);
  return answer.serializeBinary();
};

/** The answer of a node that has not taken an append, without details of why. */
export const refusedAnswer = (request: Uint8Array, message: string): Uint8Array => {
  const answer = new streams.BatchAppendResp();
  answer.setCorrelationId(streams.BatchAppendReq.deserializeBinary(request).getCorrelationId());
  answer.setError(new status.Status().setMessage(message));
  return answer.serializeBinary();
};

export interface FakeEvent {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
  readonly data: object;
  readonly type?: string;
}

/** An event as a node sends it. */
export const eventAnswer = ({ id, stream, revision, position, data, type }: FakeEvent): Uint8Array => {
  const event = new streams.ReadResp.ReadEvent.RecordedEvent();
  event.setId(uuid(id));
  const name = new shared.StreamIdentifier();
  name.setStreamName(Buffer.from(stream));
  event.setStreamIdentifier(name);
  event.setStreamRevision(String(revision));
  event.setPreparePosition(String(position));
  event.setCommitPosition(String(position));
  event.getMetadataMap().set('type', type ?? 'tested.Tested.v1');
  event.getMetadataMap().set('content-type', 'application/json');
  event.getMetadataMap().set('created', '17000000000000000');
  event.setData(Buffer.from(JSON.stringify(data)));
  event.setCustomMetadata(Buffer.from(JSON.stringify({ at: '2026-11-22T00:00:00.000Z' })));
  const read = new streams.ReadResp.ReadEvent();
  read.setEvent(event);
  read.setCommitPosition(String(position));
  const answer = new streams.ReadResp();
  answer.setEvent(read);
  return answer.serializeBinary();
};

export interface FakeMember {
  readonly port: number;
  readonly leads: boolean;
  readonly isAlive?: boolean;
  readonly host?: string | undefined;
  /** Seconds since it was last heard of. */
  readonly age?: number;
}

const { VNodeState } = gossip.MemberInfo;

/** The members of a cluster. */
export const gossipAnswer = (members: readonly FakeMember[]): Uint8Array => {
  const info = new gossip.ClusterInfo();
  for (const { port, leads, isAlive = true, host = '127.0.0.1', age = 0 } of members) {
    const member = new gossip.MemberInfo();
    member.setState(leads ? VNodeState.LEADER : VNodeState.FOLLOWER);
    member.setIsAlive(isAlive);
    member.setTimeStamp(String(17_640_000_000_000_000 - age * 10_000_000));
    const end = new gossip.EndPoint();
    end.setAddress(host);
    end.setPort(port);
    member.setHttpEndPoint(end);
    info.addMembers(member);
  }
  return info.serializeBinary();
};
