import assert from "node:assert/strict";
import { test } from "node:test";
import { anchorAfter, anchorAt, around, atEnd, clamped, contentHeight, drawn, LONGEST, moved, scrollOf, type View } from "../src/log/geometry";

const view = (rows: number, heightOf = (_: number) => 20): View => ({ rows, height: 600, estimate: 20, heightOf });
const close = (one: number, other: number, by = 1) => assert.ok(Math.abs(one - other) <= by, `${one} is not about ${other}`);

test("a short log is as high as its rows", () => assert.equal(contentHeight(view(1_000)), 20_000));
test("a log shorter than the view fills it", () => assert.equal(contentHeight(view(3)), 600));
test("no log is higher than browsers can make an element", () => assert.equal(contentHeight(view(1e9)), LONGEST));

for (const rows of [100, 10_000, 1_000_000, 300_000_000]) {
  test(`of ${rows} rows every place of the scroll bar is an anchor, and back`, () => {
    const all = view(rows);
    for (const share of [0, 0.1, 0.5, 0.99]) {
      const scroll = share * (contentHeight(all) - all.height);
      close(scrollOf(anchorAt(scroll, all), all), scroll);
    }
  });

  test(`of ${rows} rows the first and the last can be reached by dragging`, () => {
    const all = view(rows);
    const end = contentHeight(all) - all.height;
    assert.deepEqual(anchorAfter(atEnd(all), end, 0, { ...all, height: 1 }).row, 0);
    const last = anchorAfter({ row: 0, offset: 0 }, 0, end, { ...all, height: Math.min(600, end / 4) });
    assert.ok(drawn(last, all, 0).end >= rows - 1);
  });
}

test("scrolling by pixels moves by as many, however long the log is", () => {
  const all = view(50_000_000);
  const from = around(30_000_000, all);
  const after = anchorAfter(from, 1_000, 1_240, all);
  assert.equal((after.row - from.row) * 20 + after.offset - from.offset, 240);
});

test("with measured heights a pixel is a pixel, too", () => {
  const all = view(10_000, (row) => (row % 3 ? 20 : 95));
  const from = { row: 500, offset: 7 };
  const there = moved(from, 5_000, all);
  assert.deepEqual(moved(there, -5_000, all), from);
});

test("the end has the last row at the bottom edge, whatever the heights", () => {
  const all = view(1_000, (row) => 20 + (row % 7) * 13);
  const { row, offset } = atEnd(all);
  let height = -offset;
  for (let i = row; i < all.rows; i += 1) height += all.heightOf(i);
  assert.equal(height, all.height);
});

test("nothing lies before the first row or behind the last", () => {
  const all = view(1_000);
  assert.deepEqual(moved({ row: 1, offset: 3 }, -1e6, all), { row: 0, offset: 0 });
  assert.deepEqual(clamped(moved({ row: 1, offset: 3 }, 1e6, all), all), atEnd(all));
  assert.deepEqual(clamped({ row: 5_000, offset: 0 }, all), atEnd(all));
});

test("an empty log, and one of a single row, are views as well", () => {
  for (const rows of [0, 1]) {
    const all = view(rows);
    assert.deepEqual(clamped({ row: 9, offset: 9 }, all), { row: 0, offset: 0 });
    assert.ok(Number.isFinite(scrollOf({ row: 0, offset: 0 }, all)));
    assert.deepEqual(drawn({ row: 0, offset: 0 }, all, 10), { first: 0, end: rows });
  }
});

test("as few rows are drawn as fill the view, and some more", () => {
  const { first, end } = drawn({ row: 500_000, offset: 5 }, view(1_000_000), 15);
  assert.equal(first, 500_000 - 15);
  assert.equal(end, 500_000 + 31 + 15);
});

test("a row that is looked for is seen with what comes before it", () => {
  const all = view(1_000_000);
  const { first, end } = drawn(around(123_456, all), all, 0);
  assert.ok(first < 123_450 && end > 123_460);
});
