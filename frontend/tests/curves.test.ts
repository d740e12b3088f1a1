import assert from "node:assert/strict";
import { test } from "node:test";
import { aligned, alone, byTag, oddWord, oddWords, padded, positive, short, smoothed } from "../src/curves/series";
import { marked } from "../src/log/rows";
import { patternOf } from "../src/log/search";

test("without weight values stay as they are", () => assert.deepEqual(smoothed([1, null, 3], 0), [1, null, 3]));

test("smoothing begins at the first value and not at zero", () => {
  const smooth = smoothed([10, 10, 10], 0.9);
  for (const value of smooth) assert.ok(Math.abs((value ?? 0) - 10) < 1e-9);
});

test("smoothing keeps holes and lessens a spike", () => {
  const smooth = smoothed([1, null, 100, 1], 0.8);
  assert.equal(smooth[1], null);
  assert.ok((smooth[2] ?? 0) > 1 && (smooth[2] ?? 0) < 100);
});

test("a logarithm shows what is above zero", () => assert.deepEqual(positive([1, 0, -1, null]), [1, null, null, null]));

test("several runs share the steps of all", () => {
  const table = aligned([
    { steps: [0, 10], values: [1, 2] },
    { steps: [5, 10], values: [3, null] },
  ]);
  assert.deepEqual(table.steps, [0, 5, 10]);
  assert.deepEqual(table.values, [[1, undefined, 2], [undefined, 3, null]]); // prettier-ignore
});

test("a tag has a line for each run", () => {
  const tags = byTag([
    { run: "train", tag: "loss", points: [] },
    { run: "validation", tag: "loss", points: [] },
  ]);
  assert.deepEqual([...tags.keys()], ["loss"]);
  assert.equal(tags.get("loss")?.length, 2);
});

test("numbers are short", () => {
  assert.deepEqual([0, 0.00037, 12.34567, 1_234_567, null].map(short), ["0", "3.7e-4", "12.35", "1.23e+6", "–"]);
});

test("what is searched for is marked across colours", () => {
  const runs = [{ text: "lo", look: "ansi-1" }, { text: "ss = 1", look: "" }]; // prettier-ignore
  const cut = marked(runs, patternOf({ text: "LOSS", regex: false }));
  assert.deepEqual(cut.map((run) => [run.text, run.isMarked]), [["lo", true], ["ss", true], [" = 1", false]]); // prettier-ignore
});

test("a plain text is no expression, and a broken expression marks nothing", () => {
  assert.ok(patternOf({ text: "a.b(", regex: false })?.test("xa.b(x"));
  assert.equal(patternOf({ text: "(", regex: true }), null);
  assert.equal(patternOf({ text: "", regex: false }), null);
});

test("a point without a neighbour is alone; steps of other curves are no hole", () => {
  assert.deepEqual(alone([1]), [0]);
  assert.deepEqual(alone([1, undefined, 2]), []);
  assert.deepEqual(alone([1, null, 2, 3, null, 4, undefined, null]), [0, 5]);
  assert.deepEqual(alone([undefined, 7, undefined]), [1]);
  assert.deepEqual(alone([null, undefined]), []);
});

test("an axis has space beyond its values, and does not cross zero for it", () => {
  assert.deepEqual(padded(10, 20, 0.1), [9, 21]);
  assert.deepEqual(padded(0.06, 1, 0.1), [0, 1.094]);
  assert.deepEqual(padded(0, 1, 0.1), [-0.1, 1.1]);
  assert.deepEqual(padded(-20, -10, 0.1), [-21, -9]);
});

test("an axis of one value, of zero alone or of nothing has an extent", () => {
  assert.deepEqual(padded(5, 5, 0.1), [4.5, 5.5]);
  assert.deepEqual(padded(0, 0, 0.1), [-1, 1]);
  assert.deepEqual(padded(null, null, 0.1), [0, 1]);
  assert.deepEqual(padded(Infinity, -Infinity, 0.1), [0, 1]);
});

test("what is not finite is said, with the first step of it", () => {
  assert.deepEqual(["nan", "inf", "-inf", "unknown", undefined].map(oddWord), ["NaN", "∞", "−∞", "not finite", "not finite"]);
  const curve = { run: ".", tag: "loss", points: [[1, 0, 0.5], [12, 1, null], [13, 2, null]] as [number, number, number | null][], not_finite: { "12": "nan", "13": "inf" } }; // prettier-ignore
  assert.equal(oddWords(curve), "NaN at step 12 and 1 more");
  assert.equal(oddWords({ ...curve, points: [[1, 0, 0.5]] }), "");
});
