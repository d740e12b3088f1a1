import assert from "node:assert/strict";
import { test } from "node:test";
import { pageOf } from "../src/log/pages";
import { covers, farther, freshOf, nameOf, sum, taskOf } from "../src/log/places";
import { extended, hashOf, holds, linesOf } from "../src/log/permalink";

test("lines that are known are known, new ones are told from them, and a hole is noticed", () => {
  const places = { "worker-0": 100 };
  assert.equal(freshOf(places, "worker-0", 50, 50), "known");
  assert.deepEqual(freshOf(places, "worker-0", 90, 20), { skip: 10 });
  assert.deepEqual(freshOf(places, "worker-0", 100, 5), { skip: 0 });
  assert.equal(freshOf(places, "worker-0", 101, 5), "hole");
  assert.deepEqual(freshOf(places, "ps-0", 0, 1), { skip: 0 });
});

test("after a cut, what is sent again is doubled nowhere and nothing is lost", () => {
  let places: Record<string, number> = {};
  const seen: number[] = [];
  const frames = [[0, 10], [10, 10], [5, 10], [15, 10], [20, 10], [0, 30], [30, 5]]; // prettier-ignore
  for (const [first = 0, count = 0] of frames) {
    const fresh = freshOf(places, "worker-0", first, count);
    assert.notEqual(fresh, "hole");
    if (typeof fresh === "string") continue;
    for (let i = fresh.skip; i < count; i += 1) seen.push(first + i);
    places = { ...places, "worker-0": first + count };
  }
  assert.deepEqual(seen, Array.from({ length: 35 }, (_, i) => i));
});

test("places of all tasks are added and compared", () => {
  assert.equal(sum({ "worker-0": 3, "ps-0": 4 }), 7);
  assert.ok(covers({ "worker-0": 3, "ps-0": 4 }, { "worker-0": 3 }));
  assert.ok(!covers({ "worker-0": 3 }, { "worker-0": 3, "ps-0": 1 }));
  assert.deepEqual(farther({ a: 1, b: 5 }, { a: 3, c: 2 }), { a: 3, b: 5, c: 2 });
});

test("a task's name tells its role and index", () => {
  assert.deepEqual(taskOf("worker-12"), { role: "worker", index: 12 });
  assert.equal(nameOf({ role: "ps", index: 0 }), "ps-0");
});

test("a line's address counts from one, the protocol from zero", () => {
  assert.deepEqual(linesOf("#worker-0:L123"), { task: "worker-0", first: 122, last: 122 });
  assert.deepEqual(linesOf("#ps-3:L10-L20"), { task: "ps-3", first: 9, last: 19 });
  assert.deepEqual(linesOf("#ps-3:L20-L10"), { task: "ps-3", first: 9, last: 19 });
  for (const hash of ["#worker-0:L123", "#ps-3:L10-L20"]) assert.equal(hashOf(linesOf(hash)!), hash);
});

test("what is no line's address is none", () => {
  for (const hash of ["", "#", "#content", "#worker-0:L0", "#worker-0:12", "#worker:L1", "#worker-0:L1-L", "#../x:L1"]) {
    assert.equal(linesOf(hash), null, hash);
  }
});

test("a range is stretched from the line that was chosen first", () => {
  const one = extended(null, "worker-0", 10);
  assert.deepEqual(extended(one, "worker-0", 14), { task: "worker-0", first: 10, last: 14 });
  assert.deepEqual(extended(one, "worker-0", 4), { task: "worker-0", first: 4, last: 10 });
  assert.deepEqual(extended(one, "ps-0", 4), { task: "ps-0", first: 4, last: 4 });
  assert.ok(holds(extended(one, "worker-0", 14), "worker-0", 12));
  assert.ok(!holds(one, "worker-1", 10));
});

test("a gap stands where its lines would, cut to what the page covers", () => {
  const line = (n: number) => ({ role: "ps", index: 0, n, t: n, text: String(n) });
  const gap = { role: "ps", index: 0, first_line: 2, lines: 8, bytes: 1 };
  const whole = pageOf({ lines: [line(0), line(1), line(10)], gaps: [gap], start: {}, end: { "ps-0": 11 } });
  assert.deepEqual(whole.rows.map((row) => [row.line, row.gap]), [[0, undefined], [1, undefined], [2, 8], [10, undefined]]); // prettier-ignore
  const cut = pageOf({ lines: [line(10)], gaps: [gap], start: { "ps-0": 7 }, end: { "ps-0": 11 } });
  assert.deepEqual(cut.rows.map((row) => [row.line, row.gap]), [[7, 3], [10, undefined]]); // prettier-ignore
});
