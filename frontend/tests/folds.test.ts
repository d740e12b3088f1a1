import assert from "node:assert/strict";
import { test } from "node:test";
import { Folds } from "../src/log/folds";
import type { Row } from "../src/log/tape";

const NOISE = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR";

function rows(texts: string[]): Row[] {
  return texts.map((text, line) => ({ task: "worker-0", line, time: 0, text }));
}

function sizes(log: Row[], folds: Folds): (number | null)[] {
  return log.map((_, index) => folds.size(index));
}

test("a run of start-up lines is one row, and everything else is as it was", () => {
  const log = rows(["a", NOISE, NOISE, NOISE, "b", NOISE, "E0000 it broke"]);
  const folds = new Folds((index) => log[index]);
  assert.deepEqual(sizes(log, folds), [null, 3, 0, 0, null, null, null]);
});

test("a fold that was opened stays open, also when rows come before it", () => {
  const log = rows([NOISE, NOISE, NOISE]);
  const folds = new Folds((index) => log[index]);
  folds.open(2);
  assert.deepEqual(sizes(log, folds), [null, null, null]);
  log.unshift(...rows(["x"]));
  assert.deepEqual(sizes(log, folds), [null, null, null, null]);
});

test("a fold that was opened has one row that closes it, and is as it was then", () => {
  const log = rows(["a", NOISE, NOISE, NOISE, "b", NOISE]);
  const folds = new Folds((index) => log[index]);
  const opened = () => log.map((_, index) => folds.openSize(index));
  assert.deepEqual(opened(), [0, 0, 0, 0, 0, 0]);
  folds.open(2);
  assert.deepEqual(opened(), [0, 3, 0, 0, 0, 0]);
  folds.close(0);
  assert.deepEqual(opened(), [0, 3, 0, 0, 0, 0]);
  log.unshift(...rows(["x"]));
  folds.close(3);
  assert.deepEqual(sizes(log, folds), [null, null, 3, 0, 0, null, null]);
  assert.deepEqual(opened(), [0, 0, 0, 0, 0, 0, 0]);
});

test("a fold with a line that one is looking for is open", () => {
  const log = rows([NOISE, NOISE, NOISE]);
  let wanted: Row | undefined = log[1];
  const folds = new Folds((index) => log[index], (row) => row === wanted);
  assert.deepEqual(sizes(log, folds), [null, null, null]);
  wanted = undefined;
  assert.deepEqual(sizes(log, folds), [3, 0, 0]);
});

test("a log of nothing else is folded in parts of a bounded size, and a row that is not held ends a fold", () => {
  const log = rows(Array.from({ length: 300 }, () => NOISE));
  const folds = new Folds((index) => (index === 299 ? undefined : log[index]));
  assert.deepEqual(sizes(log, folds).filter((size) => size !== 0), [128, 128, 43, null]);
});
