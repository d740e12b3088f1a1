import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenLines } from "../src/log/open_lines";

test("the newest picture of a line takes the place of the one before, and the line itself takes it away", () => {
  const open = new OpenLines();
  assert.ok(open.show("worker-0", { line: 3, text: "1/2" }, 3));
  assert.ok(open.show("worker-0", { line: 3, text: "2/2" }, 3));
  assert.deepEqual([...open.all], [["worker-0", { line: 3, text: "2/2" }]]);
  assert.ok(!open.advanced("worker-0", 3));
  assert.ok(open.advanced("worker-0", 4));
  assert.equal(open.all.size, 0);
});

test("a picture that comes late, or is empty, shows nothing", () => {
  const open = new OpenLines();
  assert.ok(!open.show("worker-0", { line: 3, text: "1/2" }, 4));
  assert.ok(open.show("ps-0", { line: 9, text: "x" }, 4));
  assert.ok(open.show("ps-0", { line: 9, text: "" }, 4));
  assert.equal(open.all.size, 0);
});
