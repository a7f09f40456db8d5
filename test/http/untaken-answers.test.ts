import { EventEmitter } from 'node:events';
import { expect, it, vi } from 'vitest';
import { createUntakenAnswers } from '../../http/untaken-answers.ts';

const MINUTE = 60_000;

/** An answer that its caller does not read. */
const anAnswer = (untaken: ReturnType<typeof createUntakenAnswers>, owner = 'one', bytes = 60) => {
  const destroy = vi.fn();
  const response = new EventEmitter();
  untaken.add({ destroy }, response, bytes, owner);
  return { response, isCut: () => destroy.mock.calls.length > 0 };
};

it('cuts the callers that have waited longest when all answers together take too much memory', () => {
  const untaken = createUntakenAnswers({ writeMs: MINUTE, bytes: 150 });
  const answers = Array.from({ length: 4 }, () => anAnswer(untaken));
  expect(answers.map(({ isCut }) => isCut())).toEqual([true, true, false, false]);
  for (const { response } of answers) response.emit('close');
});

it('counts no answer that was taken', () => {
  const untaken = createUntakenAnswers({ writeMs: MINUTE, bytes: 150 });
  const taken = Array.from({ length: 10 }, () => {
    const answer = anAnswer(untaken);
    answer.response.emit('finish');
    answer.response.emit('close');
    return answer;
  });
  const [first, second] = [anAnswer(untaken), anAnswer(untaken)];
  expect([...taken, first, second].some(({ isCut }) => isCut())).toBe(false);
  anAnswer(untaken).response.emit('close');
  expect([first.isCut(), second.isCut()]).toEqual([true, false]);
  second.response.emit('close');
});

it('keeps the newest answer, however long it is', () => {
  const untaken = createUntakenAnswers({ writeMs: MINUTE, bytes: 10 });
  const long = anAnswer(untaken);
  expect(long.isCut()).toBe(false);
  long.response.emit('close');
});

it('cuts callers of the network whose answers take most, and no older one of others', () => {
  const untaken = createUntakenAnswers({ writeMs: MINUTE, bytes: 250 });
  const answers = ['one', 'two', 'two', 'three', 'two', 'two'].map((owner) => anAnswer(untaken, owner));
  expect(answers.map(({ isCut }) => isCut())).toEqual([false, true, true, false, false, false]);
  for (const { response } of answers) response.emit('close');
});

it('keeps to the limit where each network takes more than the one before', () => {
  const untaken = createUntakenAnswers({ writeMs: MINUTE, bytes: 150 });
  const answers = [50, 51, 52, 53, 54].map((bytes) => anAnswer(untaken, `${bytes}`, bytes));
  expect(answers.filter(({ isCut }) => !isCut())).toHaveLength(2);
  expect(answers.at(-1)?.isCut()).toBe(false);
  for (const { response } of answers) response.emit('close');
});
