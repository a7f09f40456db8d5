import { randomUUID } from 'node:crypto';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import fc from 'fast-check';
import protobuf from 'protobufjs/minimal.js';
import { describe, expect, it } from 'vitest';
import { createUnframer, framed } from '../../event-store/eventstoredb/grpc.ts';
import {
  decodeAppended,
  decodeGossip,
  decodeRead,
  encodeAppend,
  encodeRead,
} from '../../event-store/eventstoredb/messages.ts';
import { eventAnswer, type FakeEvent, gossipAnswer } from '../support/fake-node.ts';

const { Writer } = protobuf;
const RUNS = { numRuns: 300 };
const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const whole = fc.maxSafeNat();
const json = fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
/** Of numbers that the messages do not define, of each wire type. */
const unknownFields = fc
  .array(
    fc.tuple(
      fc.integer({ min: 100, max: 2_000 }),
      fc.constantFrom(0, 1, 2, 5),
      fc.uint8Array({ maxLength: 9 }),
    ),
    { maxLength: 4 },
  )
  .map((list) =>
    Buffer.concat(list.map(([number, wireType, bytes]) => unknownField(number, wireType, bytes))),
  );

function unknownField(number: number, wireType: number, bytes: Uint8Array): Buffer {
  const tag = (number << 3) | wireType;
  const head =
    tag < 2 ** 14
      ? [(tag & 127) | 128, tag >>> 7]
      : [(tag & 127) | 128, ((tag >>> 7) & 127) | 128, tag >>> 14];
  const value = { 0: [7], 1: Array(8).fill(1), 2: [bytes.length, ...bytes], 5: Array(4).fill(1) }[wireType];
  return Buffer.from([...head, ...(value ?? [])]);
}

const fakeEvent: fc.Arbitrary<FakeEvent> = fc.record({
  id: fc.uuid(),
  stream: text,
  revision: whole,
  position: whole,
  data: json,
  type: text,
});

describe('messages to the node', () => {
  it('are read by the generated client as they were meant: an append', () => {
    const proposed = fc.record({ id: fc.uuid(), type: text, data: json.map((data) => JSON.stringify(data)) });
    const expected = fc.oneof(
      whole,
      fc.constantFrom('any' as const, 'no_stream' as const, 'stream_exists' as const),
    );
    fc.assert(
      fc.property(
        fc.uuid(),
        text,
        expected,
        fc.array(proposed, { maxLength: 5 }),
        fc.nat(99_999),
        (id, stream, at, list, ms) => {
          const events = list.map((event) => ({ ...event, metadata: '{"at":"ü"}' }));
          const read = streams.BatchAppendReq.deserializeBinary(encodeAppend(id, stream, at, events, ms));
          const options = read.getOptions();
          expect(read.getCorrelationId()?.getString()).toBe(id);
          expect(read.getIsFinal()).toBe(true);
          expect(Buffer.from(options?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString()).toBe(
            stream,
          );
          expect({
            at: options?.hasStreamPosition() ? Number(options.getStreamPosition()) : null,
            any: options?.hasAny(),
            no_stream: options?.hasNoStream(),
            stream_exists: options?.hasStreamExists(),
          }).toEqual({
            at: typeof at === 'number' ? at : null,
            any: at === 'any',
            no_stream: at === 'no_stream',
            stream_exists: at === 'stream_exists',
          });
          // The deadline is a later field than the generated client knows.
          expect(options?.hasDeadline()).toBe(false);
          const got = read.getProposedMessagesList().map((message) => ({
            id: message.getId()?.getString(),
            type: message.getMetadataMap().get('type'),
            contentType: message.getMetadataMap().get('content-type'),
            data: Buffer.from(message.getData_asU8()).toString(),
            metadata: Buffer.from(message.getCustomMetadata_asU8()).toString(),
          }));
          expect(got).toEqual(events.map((event) => ({ ...event, contentType: 'application/json' })));
        },
      ),
      RUNS,
    );
  });

  it('are read by the generated client as they were meant: a read', () => {
    const from = fc.option(whole);
    fc.assert(
      fc.property(
        fc.option(text),
        fc.boolean(),
        from,
        fc.option(fc.nat(1_000)),
        (stream, backwards, at, count) => {
          const bytes = encodeRead({ stream, backwards, from: at, count });
          const options = streams.ReadReq.deserializeBinary(bytes).getOptions();
          const one = options?.getStream();
          const all = options?.getAll();
          const name = one?.getStreamIdentifier()?.getStreamName_asU8();
          expect(name === undefined ? null : Buffer.from(name).toString()).toBe(stream);
          const bound = one ?? all;
          expect([bound?.hasStart(), bound?.hasEnd()]).toEqual(
            at === null ? [!backwards, backwards] : [false, false],
          );
          if (at !== null)
            expect(Number(one?.getRevision() ?? all?.getPosition()?.getCommitPosition())).toBe(at);
          expect(options?.getReadDirection()).toBe(backwards ? 1 : 0);
          expect(options?.hasSubscription()).toBe(count === null);
          if (count !== null) expect(Number(options?.getCount())).toBe(count);
          expect(options?.getResolveLinks()).toBe(false);
          expect(options?.hasNoFilter()).toBe(true);
          expect(options?.getUuidOption()?.hasString()).toBe(true);
          expect(options?.getControlOption()?.getCompatibility()).toBe(1);
        },
      ),
      RUNS,
    );
  });
});

describe('messages of the node', () => {
  it('are read as the generated client wrote them, among unknown fields: an event', () => {
    fc.assert(
      fc.property(fakeEvent, unknownFields, (event, more) => {
        const { event: read } = decodeRead(Buffer.concat([more, eventAnswer(event), more]));
        const { position, ...rest } = event;
        const metadata = { at: '2026-11-22T00:00:00.000Z' };
        expect(read).toEqual({
          ...rest,
          data: JSON.parse(JSON.stringify(rest.data)),
          position: BigInt(position),
          metadata,
        });
      }),
      RUNS,
    );
  });

  it('are read although another application says that bytes are JSON which are not', () => {
    const fake = { id: randomUUID(), stream: 's-1', revision: 0, position: 7, data: {} };
    const answer = streams.ReadResp.deserializeBinary(eventAnswer(fake));
    const event = answer.getEvent()?.getEvent();
    for (const bytes of ['', '0@s-2', '{"a":']) {
      event?.setData(Buffer.from(bytes));
      event?.setCustomMetadata(Buffer.from(bytes));
      const read = decodeRead(Buffer.from(answer.serializeBinary()));
      expect(read.event).toMatchObject({ position: 7n, data: {}, metadata: {} });
    }
  });

  it('are read as the generated client wrote them, among unknown fields: the answer to an append', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        whole,
        fc.option(fc.integer({ min: 1 })),
        unknownFields,
        (id, revision, position, more) => {
          const answer = new streams.BatchAppendResp();
          const uuid = new shared.UUID();
          uuid.setString(id);
          answer.setCorrelationId(uuid);
          const success = new streams.BatchAppendResp.Success();
          success.setCurrentRevision(String(revision));
          if (position === null) success.setNoPosition(new shared.Empty());
          else {
            const at = new shared.AllStreamPosition();
            at.setCommitPosition(String(position));
            at.setPreparePosition('1');
            success.setPosition(at);
          }
          answer.setSuccess(success);
          expect(decodeAppended(Buffer.concat([more, answer.serializeBinary(), more]))).toEqual({
            correlationId: id,
            error: null,
            revision,
            position: position === null ? null : BigInt(position),
          });
        },
      ),
      RUNS,
    );
  });

  it.each([7, null])(
    'are read as the generated client wrote them: a refusal where the stream is at %s',
    (actual) => {
      const wrong = new shared.WrongExpectedVersion();
      if (actual === null) wrong.setCurrentNoStream(new shared.Empty());
      else wrong.setCurrentStreamRevision(String(actual));
      const details = Writer.create()
        .uint32(10)
        .string('type.googleapis.com/event_store.client.WrongExpectedVersion')
        .uint32(18)
        .bytes(wrong.serializeBinary())
        .finish();
      const error = Writer.create()
        .uint32(18)
        .string('WrongExpectedVersion')
        .uint32(26)
        .bytes(details)
        .finish();
      const bytes = Buffer.from(Writer.create().uint32(18).bytes(error).finish());
      expect(streams.BatchAppendResp.deserializeBinary(bytes).getError()?.getMessage()).toBe(
        'WrongExpectedVersion',
      );
      expect(decodeAppended(bytes)).toMatchObject({
        correlationId: '',
        error: { kind: 'WrongExpectedVersion', message: 'WrongExpectedVersion', actual },
      });
    },
  );

  it('are read as the generated client wrote them: caught up, and what is of no interest', () => {
    const caughtUp = new streams.ReadResp();
    caughtUp.setCaughtUp(new streams.ReadResp.CaughtUp());
    expect(decodeRead(Buffer.from(caughtUp.serializeBinary()))).toEqual({ event: null, isCaughtUp: true });
    const confirmation = new streams.ReadResp();
    const subscription = new streams.ReadResp.SubscriptionConfirmation();
    subscription.setSubscriptionId(randomUUID());
    confirmation.setConfirmation(subscription);
    expect(decodeRead(Buffer.from(confirmation.serializeBinary()))).toEqual({
      event: null,
      isCaughtUp: false,
    });
  });

  it('are read as the generated client wrote them: the members of a cluster', () => {
    const bytes = gossipAnswer([
      { port: 1, leads: true },
      { port: 2, leads: false, isAlive: false, age: 60 },
    ]);
    expect(gossip.ClusterInfo.deserializeBinary(bytes).getMembersList()).toHaveLength(2);
    const [leader, dead] = decodeGossip(Buffer.from(bytes));
    expect(leader).toMatchObject({ host: '127.0.0.1', port: 1, isAlive: true, isLeader: true });
    expect(dead).toMatchObject({ host: '127.0.0.1', port: 2, isAlive: false, isLeader: false });
    expect((leader?.seenAt ?? 0) - (dead?.seenAt ?? 0)).toBeCloseTo(600_000_000, -2);
  });

  it('that end early or are any bytes at all are read or refused, and nothing is allocated by a claimed length', () => {
    const decoders = [decodeRead, decodeAppended, decodeGossip];
    const cut = fc
      .tuple(fakeEvent.map(eventAnswer), fc.nat())
      .map(([bytes, at]) => bytes.subarray(0, at % bytes.length));
    const before = process.memoryUsage().arrayBuffers;
    fc.assert(
      fc.property(fc.oneof(cut, fc.uint8Array({ maxLength: 60 })), (bytes) => {
        for (const decode of decoders) {
          try {
            decode(Buffer.from(bytes));
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
          }
        }
      }),
      { numRuns: 3_000 },
    );
    // An event whose data claims 2 GiB.
    expect(() => decodeRead(Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 0x0a]))).toThrow();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1_048_576);
  });

  it('that end early are refused wherever they are cut', () => {
    const whole = Buffer.from(
      eventAnswer({ id: randomUUID(), stream: 's-1', revision: 1, position: 9, data: { a: 1 } }),
    );
    for (let at = 1; at < whole.length; at += 1)
      expect(() => decodeRead(whole.subarray(0, at)), `${at}`).toThrow();
  });
});

describe('frames', () => {
  it('give the same messages however their bytes are split and joined', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 25 }), { minLength: 1 }),
        (messages, sizes) => {
          const bytes = Buffer.concat(messages.map(framed));
          const seen: Buffer[] = [];
          const { take, isAmid } = createUnframer((message) => void seen.push(message));
          for (let [at, n] = [0, 0]; at < bytes.length; n += 1) {
            const size = sizes[n % sizes.length] as number;
            take(bytes.subarray(at, at + size));
            at += size;
          }
          expect(seen.map((message) => [...message])).toEqual(messages.map((message) => [...message]));
          expect(isAmid()).toBe(false);
        },
      ),
      RUNS,
    );
  });

  it('of more than 20 MiB and compressed ones are refused as soon as their head has come', () => {
    const head = (flag: number, length: number): Buffer => {
      const bytes = Buffer.alloc(5, flag);
      bytes.writeUInt32BE(length, 1);
      return bytes;
    };
    const take = (bytes: Buffer) => () => createUnframer(() => undefined).take(bytes);
    expect(take(head(0, 21 * 1_048_576))).toThrow('message of');
    expect(take(head(0, 0xff_ff_ff_ff))).toThrow('message of');
    expect(take(head(1, 3))).toThrow('compressed');
    const before = process.memoryUsage().arrayBuffers;
    const waiting = Array.from({ length: 100 }, () => createUnframer(() => undefined));
    for (const { take: begin } of waiting) begin(head(0, 19 * 1_048_576));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_048_576);
    expect(waiting.every(({ isAmid }) => isAmid())).toBe(true);
  });
});
