import assert from "node:assert/strict";
import { test } from "node:test";
import { goodness, metricAxis, placeOf, ticks, wordsAt, type Plots } from "../src/sweeps/scale";

const lr = { name: "lr", low: 0.001, high: 0.1, log: true };
const units = { name: "units", low: 10, high: 30 };
const opt = { name: "opt", choices: ["adam", "sgd", "rmsprop"] };

test("numbers lie evenly, or evenly by their logarithm", () => {
  assert.equal(placeOf(units, 15), 0.25);
  assert.ok(Math.abs((placeOf(lr, 0.01) ?? 0) - 0.5) < 1e-9);
});

test("choices lie in their order, and what is none has no place", () => {
  assert.deepEqual(["adam", "sgd", "rmsprop", "other"].map((one) => placeOf(opt, one)), [0, 0.5, 1, null]);
  assert.equal(placeOf(units, "many"), null);
  assert.equal(placeOf({ name: "x", low: 2, high: 2 }, 2), 0.5);
});

test("words say what stands at a place", () => {
  assert.equal(wordsAt(opt, 0.5), "sgd");
  assert.equal(wordsAt(units, 0.5), "20");
  assert.equal(wordsAt(lr, 0.5), "0.01");
  assert.deepEqual(ticks(opt), [0, 0.5, 1]);
});

test("the lowest is the best, or the highest", () => {
  const trials = [1, 3].map((best, n) => ({ n, values: [], best, state: "", url: "" }));
  const plots = (goal: "minimize" | "maximize"): Plots => ({ axes: [], metric: { tag: "m", goal }, trials, curves: [] });
  assert.equal(goodness(plots("minimize"), metricAxis(plots("minimize")), 1), 1);
  assert.equal(goodness(plots("maximize"), metricAxis(plots("maximize")), 1), 0);
});
