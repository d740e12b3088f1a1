import assert from "node:assert/strict";
import { test } from "node:test";
import { Tape, type Page, type Row } from "../src/log/tape";

const row = (task: string, line: number, gap?: number): Row => ({ task, line, time: line, text: `${task} ${line}`, ...(gap ? { gap } : {}) });
const rows = (task: string, first: number, end: number) => Array.from({ length: end - first }, (_, i) => row(task, first + i));
const page = (task: string, first: number, end: number): Page => ({ rows: rows(task, first, end), start: { [task]: first }, end: { [task]: end } });

test("it knows how long the log is beyond what it holds", () => {
  const tape = new Tape();
  tape.replace(page("worker-0", 900, 1_000));
  tape.grow(5_000);
  assert.deepEqual([tape.first, tape.last, tape.total], [900, 1_000, 5_000]);
  assert.equal(tape.at(950)?.line, 950);
  assert.equal(tape.at(899), undefined);
});

test("it is lengthened at both ends without moving what it holds", () => {
  const tape = new Tape();
  tape.replace(page("worker-0", 500, 600));
  assert.equal(tape.prepend(page("worker-0", 400, 500)), 0);
  assert.equal(tape.append(rows("worker-0", 600, 700), { "worker-0": 700 }), 0);
  assert.equal(tape.at(555)?.line, 555);
  assert.deepEqual([tape.first, tape.last], [400, 700]);
});

test("it never holds more rows than it may, whichever way it grows", () => {
  const tape = new Tape({ rows: 1_000, characters: 1e9 });
  tape.replace(page("worker-0", 50_000, 50_100));
  for (let at = 50_100; at < 60_000; at += 100) tape.append(rows("worker-0", at, at + 100), { "worker-0": at + 100 });
  assert.ok(tape.held().length <= 1_000);
  assert.equal(tape.last, 60_000);
  assert.equal(tape.at(59_999)?.line, 59_999);
  assert.equal(tape.start["worker-0"], tape.held()[0]?.line);
  for (let at = tape.first; at > 40_000; at = tape.first) tape.prepend(page("worker-0", at - 100, at));
  assert.ok(tape.held().length <= 1_000);
  assert.equal(tape.end["worker-0"], (tape.held().at(-1)?.line ?? 0) + 1);
  assert.equal(tape.total, 60_000);
});

test("it never holds more characters than it may, but always something", () => {
  const tape = new Tape({ rows: 1_000, characters: 10_000 });
  tape.replace({ rows: [], start: {}, end: {} });
  for (let at = 0; at < 100; at += 1) tape.append([{ ...row("ps-0", at), text: "x".repeat(4_000) }], { "ps-0": at + 1 });
  const held = tape.held();
  assert.ok(held.length >= 1 && held.length <= 3);
  assert.equal(tape.last, 100);
});

test("of several tasks it knows for each where it begins and ends", () => {
  const tape = new Tape({ rows: 20, characters: 1e9 });
  const mixed: Row[] = [];
  for (let line = 0; line < 30; line += 1) mixed.push(row("worker-0", line), row("ps-0", line));
  tape.replace({ rows: [], start: {}, end: {} });
  for (let i = 0; i < mixed.length; i += 2) tape.append(mixed.slice(i, i + 2), { "worker-0": i / 2 + 1, "ps-0": i / 2 + 1 });
  const first = (task: string) => tape.held().find((one) => one.task === task)?.line;
  assert.deepEqual(tape.start, { "worker-0": first("worker-0"), "ps-0": first("ps-0") });
  assert.equal(tape.first + tape.held().length, 60);
});

test("a gap is one row and as many lines as are missing", () => {
  const tape = new Tape();
  tape.replace({ rows: [...rows("ps-0", 0, 5), row("ps-0", 5, 95), ...rows("ps-0", 100, 110)], start: {}, end: { "ps-0": 110 } });
  assert.equal(tape.total, 16);
  assert.equal(tape.indexOf("ps-0", 50), 5);
  assert.equal(tape.indexOf("ps-0", 100), 6);
});

test("rows that came before a gap tell by how much every index has changed", () => {
  const tape = new Tape();
  tape.replace(page("ps-0", 100, 110));
  const before = { rows: [...rows("ps-0", 0, 5), row("ps-0", 5, 95)], start: {}, end: { "ps-0": 100 } };
  const shift = tape.prepend(before);
  assert.equal(tape.at(100 + shift)?.line, 100);
});

test("lines that it does not hold have no index", () => {
  const tape = new Tape();
  tape.replace(page("worker-0", 10, 20));
  assert.equal(tape.indexOf("worker-0", 25), undefined);
  assert.equal(tape.indexOf("worker-1", 15), undefined);
});
