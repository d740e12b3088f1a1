import assert from "node:assert/strict";
import { test } from "node:test";
import { plainOf, runsOf } from "../src/log/ansi";

const ESC = "\x1b";

test("plain text is one run", () => assert.deepEqual(runsOf("step 1"), [{ text: "step 1", look: "" }]));
test("an empty line has no runs", () => assert.deepEqual(runsOf(""), []));

test("colours become classes and end where they are reset", () => {
  assert.deepEqual(runsOf(`${ESC}[31mred${ESC}[0m plain`), [
    { text: "red", look: "ansi-1" },
    { text: " plain", look: "" },
  ]);
});

test("bold, underline and bright colours add up", () => {
  assert.deepEqual(runsOf(`${ESC}[1;4;92;41mx`), [{ text: "x", look: "ansi-10 ansi-on-1 ansi-bold ansi-underline" }]);
});

test("what is switched off alone is off alone", () => {
  assert.deepEqual(
    runsOf(`${ESC}[1;31ma${ESC}[22mb${ESC}[39mc`).map((run) => run.look),
    ["ansi-1 ansi-bold", "ansi-1", ""],
  );
});

test("inverse swaps ink and ground", () => {
  assert.deepEqual(runsOf(`${ESC}[31;7mx`), [{ text: "x", look: "ansi-0 ansi-on-1" }]);
});

test("256 and true colours become the nearest of sixteen, and do not eat what follows", () => {
  assert.equal(runsOf(`${ESC}[38;5;9mx`)[0]?.look, "ansi-9");
  assert.equal(runsOf(`${ESC}[38;5;196;1mx`)[0]?.look, "ansi-1 ansi-bold");
  assert.equal(runsOf(`${ESC}[38;2;250;250;250;3mx`)[0]?.look, "ansi-15 ansi-italic");
  assert.equal(runsOf(`${ESC}[48;2;0;0;0mx`)[0]?.look, "ansi-on-0");
});

test("neighbours of one look are one run", () => {
  assert.equal(runsOf(`${ESC}[31ma${ESC}[31mb`).length, 1);
});

test("a progress bar shows its last state", () => {
  assert.equal(plainOf("10%\r 50%\r100%"), "100%");
  assert.equal(plainOf("10%\r 50%\r"), " 50%");
});

test("other escapes, titles and control characters are left out", () => {
  assert.equal(plainOf(`a${ESC}[2Kb${ESC}[1;5Hc${ESC}]0;title\x07d\b\x00e${ESC}[?25l`), "abcde");
});

test("markup is text like any other", () => assert.equal(plainOf("<b>&amp;</b>"), "<b>&amp;</b>"));

test("broken escapes do no harm and lose no text but their own", () => {
  assert.equal(plainOf(`a${ESC}[`), "a[");
  assert.equal(plainOf(`${ESC}[999;;;mz`), "z");
  assert.equal(plainOf(`tail${ESC}`), "tail");
  assert.equal(plainOf(`${ESC}[38mx${ESC}[38;5mz`), "xz");
});

test("any text survives in bounded time", () => {
  const started = performance.now();
  for (const hostile of [`${ESC}[`.repeat(50_000), "\r".repeat(100_000), `${ESC}]`.repeat(20_000), "1;".repeat(50_000)]) {
    runsOf(hostile);
    runsOf(`${ESC}[${hostile}m`);
  }
  assert.ok(performance.now() - started < 3_000);
});
