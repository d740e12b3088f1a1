import assert from "node:assert/strict";
import { test } from "node:test";
import { linked, linksIn } from "../src/log/links";

const found = (text: string) => linksIn(text).map(({ start, end }) => text.slice(start, end));

test("addresses are found without the punctuation around them", () => {
  assert.deepEqual(found("see https://a.example/x?y=1&z=%20#top."), ["https://a.example/x?y=1&z=%20#top"]);
  assert.deepEqual(found("(http://a.example:6006/), and <https://b.example>!"), ["http://a.example:6006/", "https://b.example"]);
  assert.deepEqual(found('"https://a.example/x", \'https://b.example/y\''), ["https://a.example/x", "https://b.example/y"]);
  assert.deepEqual(found("[docs](https://en.example/wiki/A_(b))"), ["https://en.example/wiki/A_(b)"]);
});

test("nothing but http and https leads anywhere", () => {
  for (const text of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "ftp://a.example", "xhttps://a.example", "https://", "http://.", "s3://bucket/key"]) {
    assert.deepEqual(found(text), [], text);
  }
});

test("an address that hides where it leads is none", () => {
  assert.deepEqual(found("https://portal.example@evil.example/"), []);
  assert.deepEqual(found("https://a.example/\u202egpj.exe"), ["https://a.example/"]);
});

test("a line has a bounded number of addresses of a bounded length", () => {
  assert.equal(found("http://a.example ".repeat(500)).length, 20);
  assert.ok((found(`http://a.example/${"x".repeat(50_000)}`)[0] ?? "").length < 2_100);
});

test("an address goes through colours and marks as one", () => {
  const runs = [{ text: "at https://a.ex" }, { text: "ample/x, done" }];
  const cut = linked(runs).map(({ run, link }) => [run.text, link?.href ?? ""]);
  assert.deepEqual(cut, [["at ", ""], ["https://a.ex", "https://a.example/x"], ["ample/x", "https://a.example/x"], [", done", ""]]); // prettier-ignore
});
