// Which chosen files are meant, and what is left to send of an upload.
import assert from "node:assert/strict";
import { test } from "node:test";
import { byCharacters, choose, commonTop, nameFor, type Picked } from "../src/upload/choice";
import { arrivedOf, lackingOf, match, rangeOf, restAfter, Speed, type ServerFile } from "../src/upload/plan";

function picked(...paths: string[]): Picked[] {
  return paths.map((path) => ({ path, file: fileOf(path, 3) }));
}

function fileOf(name: string, size: number, lastModified = 1): File {
  return { name, size, lastModified } as File;
}

const paths = (files: Picked[]) => choose(files).files.map((one) => one.path);

test("one folder is what is meant by its content", () => {
  assert.deepEqual(paths(picked("shards/b", "shards/sub/c", "shards/a")), ["a", "b", "sub/c"]);
});

test("a folder beside a file, and two folders, keep their names", () => {
  assert.deepEqual(paths(picked("shards/a", "b")), ["b", "shards/a"]);
  assert.deepEqual(paths(picked("x/a", "y/a")), ["x/a", "y/a"]);
});

test("caches and version control are left out and counted, as the command line does", () => {
  const { files, leftOut } = choose(picked("code/train.py", "code/.git/HEAD", "code/.git/config", "code/lib/__pycache__/a.pyc", "code/.DS_Store"));
  assert.deepEqual(files.map((one) => one.path), ["train.py"]);
  assert.deepEqual([...leftOut], [[".git", 2], ["__pycache__", 1], [".DS_Store", 1]]);
});

test("a file that is chosen twice is sent once, as it was chosen last", () => {
  const [old, fresh] = [fileOf("a", 1), fileOf("a", 2)];
  assert.equal(choose([{ path: "a", file: old }, { path: "a", file: fresh }]).files[0]?.file, fresh);
});

test("nothing chosen is nothing to send", () => {
  assert.deepEqual(paths([]), []);
  assert.equal(commonTop([]), "");
  assert.equal(nameFor([]), "");
});

test("a name is made of the folder or of the only file", () => {
  assert.equal(nameFor(picked("shards/a", "shards/b")), "shards");
  assert.equal(nameFor(picked("digits.v2.zip")), "digits.v2");
  assert.equal(nameFor(picked("a", "b")), "");
});

function onServer(size: number, done: number[], partSize = 10): ServerFile {
  return { index: 0, path: "a", size, parts: Math.ceil(size / partSize), done };
}

test("parts cover a file exactly, and the last one is what remains", () => {
  assert.deepEqual([1, 2, 3].map((part) => rangeOf(onServer(25, []), part, 10)), [[0, 10], [10, 20], [20, 25]]);
});

test("only parts that the portal lacks are to be sent", () => {
  assert.deepEqual(lackingOf(onServer(25, [2])), [1, 3]);
  assert.deepEqual(lackingOf(onServer(0, [])), []);
  assert.equal(arrivedOf(onServer(25, [1, 3]), 10), 15);
});

test("files chosen again are known by path, size and the time of their last change", () => {
  const files: ServerFile[] = ["a", "b", "c", "d"].map((path, index) => ({ index, path, size: 10, parts: 1, done: path === "d" ? [1] : [] }));
  const chosen = [
    { path: "a", file: fileOf("a", 10, 5) },
    { path: "b", file: fileOf("b", 11, 5) },
  ];
  const found = match(files, chosen, [5, 5, 5, 5]);
  assert.deepEqual([...found.sources.keys()], [0]);
  assert.deepEqual(found.changed, ["b"]);
  assert.deepEqual(found.missing, ["c"]); // d has arrived, and need not be chosen
  assert.deepEqual(match(files, chosen, [6]).changed, ["a", "b"]);
  assert.deepEqual(match(files, chosen, []).changed, ["b"]); // another browser: no times are known
});

test("tries come ever more rarely, but at least twice a minute", () => {
  const rests = [1, 2, 3, 4, 5, 6, 20].map((failures) => restAfter(failures, 1));
  assert.deepEqual(rests, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  assert.ok(restAfter(3, 0) < restAfter(3, 1));
});

test("speed is that of the last moments", () => {
  const speed = new Speed();
  assert.equal(speed.perSecond(), 0);
  for (let second = 0; second <= 60; second += 1) speed.note(second * 1_000, second < 50 ? second * 100 : 5_000 + (second - 50) * 10);
  assert.equal(speed.perSecond(), 10);
});

test("paths are in the order of their bytes, also beyond the first 65,536 characters", () => {
  const paths = ["a-b", "a/b", "a0", "b", "\u540d", "\uffee", "\u{1f600}", "\u{1f600}a"];
  assert.deepEqual([...paths].reverse().sort(byCharacters), paths);
  assert.equal(byCharacters("a", "a"), 0);
});
