import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogPages, Query } from "../src/log/pages";
import { Search } from "../src/log/search";

const QUERY: Query = { text: "x", regex: false, level: "" };

/** A log of one task in which every line matches, found a thousand at a time. */
function pages(count: number, asked: (string | null)[] = []): LogPages {
  const search = async (_: Query, from: string | null, limit: number) => {
    asked.push(from);
    const first = Number(from ?? 0);
    const end = Math.min(count, first + limit);
    const rows = Array.from({ length: end - first }, (_, i) => ({ task: "worker-0", line: first + i, time: first + i, text: "x" }));
    return { rows, next: end < count ? String(end) : null };
  };
  return { search } as unknown as LogPages;
}

const fail = (error: unknown) => assert.fail(String(error));

test("one walks through every match, further than what is looked up at first, and round", async () => {
  const search = new Search(pages(12_500), QUERY, () => {}, fail);
  await search.run();
  assert.equal(search.count, 5_000);
  assert.equal(search.words, "5,000+");
  const seen = [search.startAt(undefined)?.line];
  for (let i = 1; i < 12_500; i += 1) seen.push((await search.step(1))?.line);
  assert.deepEqual(seen, Array.from({ length: 12_500 }, (_, i) => i));
  assert.equal(search.words, "12,500 of 12,500");
  assert.equal((await search.step(1))?.line, 0);
});

test("the one before the first is the last, also of those that were not looked up yet", async () => {
  const search = new Search(pages(9_001), QUERY, () => {}, fail);
  await search.run();
  search.startAt(undefined);
  assert.equal((await search.step(-1))?.line, 9_000);
  assert.equal(search.words, "9,001 of 9,001");
  assert.equal((await search.step(-1))?.line, 8_999);
});

test("two steps at once look up each page once", async () => {
  const asked: (string | null)[] = [];
  const search = new Search(pages(7_000, asked), QUERY, () => {}, fail);
  await search.run();
  search.startAt(undefined);
  await Promise.all([search.step(-1), search.step(-1)]);
  assert.equal(new Set(asked).size, asked.length);
});

test("few matches are known with their number at once", async () => {
  const search = new Search(pages(1_204), QUERY, () => {}, fail);
  await search.run();
  for (let i = 0; i < 3; i += 1) i ? await search.step(1) : search.startAt(undefined);
  assert.equal(search.words, "3 of 1,204");
});
