// The browser and the server must agree on what an error is: both are given the same lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import cases from "../../tests/unit/logs/level_cases.json";
import { isAtLeast, levelOf } from "../src/log/levels";

for (const [line, level] of cases as [string, string | null][]) {
  test(`the level of ${JSON.stringify(line.slice(0, 40))} is ${level}`, () => assert.equal(levelOf(line), level));
}

test("a level includes the graver ones", () => {
  assert.ok(isAtLeast("error", "warning"));
  assert.ok(isAtLeast("warning", "warning"));
  assert.ok(!isAtLeast("info", "warning"));
  assert.ok(!isAtLeast(null, "debug"));
});

test("a line of a million characters is looked at in no time", () => {
  const started = performance.now();
  levelOf(" ".repeat(1_000_000) + "ERROR");
  assert.ok(performance.now() - started < 50);
});
