// Sending parts over a network and a portal that fail in every way they can. Both are played here.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Refusal } from "../src/api";
import { put, type OpenUpload } from "../src/upload/portal";
import { Sender, Unreadable } from "../src/upload/sender";

const PART = 10;
/** What answers a PUT: a status, with the store's words, or null while it hangs until it is aborted. */
let answer: (url: string) => number | [number, string] | null;
/** Tells a PUT that hangs of its progress. */
let progress: (event: { loaded: number }) => void;
/** Not the clock that tests replace. */
const realTimeout = setTimeout;
let sent: string[] = [];
let signed = 0;
let digests: string[] = [];

class PlayedRequest {
  readonly upload = { addEventListener: (_name: string, act: typeof progress) => (progress = act) };
  status = 0;
  responseText = "";
  private url = "";
  private ended = () => {};
  addEventListener(_name: string, act: () => void): void {
    this.ended = act;
  }
  open(_method: string, url: string): void {
    this.url = url;
  }
  setRequestHeader(): void {}
  abort(): void {
    this.ended();
  }
  send(body: Blob): void {
    const answered = answer(this.url);
    if (answered === null) return;
    const [status, text] = Array.isArray(answered) ? answered : [answered, ""];
    [this.status, this.responseText] = [status, text];
    if (status === 200) sent.push(`${this.url}:${body.size}`);
    realTimeout(() => this.ended());
  }
}

Object.assign(globalThis, {
  XMLHttpRequest: PlayedRequest,
  document: { querySelector: () => null },
  location: { origin: "https://portal.example" },
  addEventListener: () => {},
  removeEventListener: () => {},
  fetch: (_path: string, { body }: { body: string }) => {
    signed += 1;
    const { parts } = JSON.parse(body) as { parts: { file: number; part: number; sha256: string }[] };
    const urls = parts.map(({ file, part, sha256 }) => {
      digests.push(sha256);
      return { file, part, method: "PUT", headers: {}, url: `https://portal/${file}/${part}/${signed}` };
    });
    return Promise.resolve(new Response(JSON.stringify({ urls })));
  },
});

beforeEach(() => {
  answer = () => 200;
  sent = [];
  signed = 0;
  digests = [];
});

test("a store of its own that does not answer is named, with what to allow there", async () => {
  answer = () => 0;
  const upload = { id: "u", part_size: PART, files: [{ index: 0, path: "f", size: 35, parts: 4, done: [] }] } as unknown as OpenUpload;
  const sender = new Sender(upload, new Map([[0, new File([new Uint8Array(35)], "f")]]), (url) => url.replace("portal", "store.example:9000"));
  const run = sender.run();
  await until(() => sender.waits.includes("store"));
  assert.match(sender.waits, /object store at https:\/\/store\.example:9000 does not answer/);
  assert.match(sender.waits, /allow the origin https:\/\/portal\.example there \(CORS/);
  sender.stop();
  await run;
});

test("the portal that does not answer is not called a store", async () => {
  answer = () => 0;
  const sender = senderOf({ size: 35 });
  const run = sender.run();
  await until(() => sent.length + signed >= 4);
  assert.equal(sender.waits, "The portal does not respond.");
  sender.stop();
  await run;
});

function senderOf(...files: { size: number; done?: number[]; source?: File }[]): Sender {
  const upload = {
    id: "u",
    part_size: PART,
    files: files.map(({ size, done = [] }, index) => ({ index, path: `f${index}`, size, parts: Math.ceil(size / PART), done })),
  } as unknown as OpenUpload;
  const sources = new Map(files.map(({ size, source }, index) => [index, source ?? new File([new Uint8Array(size)], "f")]));
  return new Sender(upload, sources, (url) => url.replace("https://portal", ""));
}

/** Waits for what happens by itself, a minute at most: the machine may be busy. */
async function until(isSo: () => boolean): Promise<void> {
  for (let at = 0; at < 6000 && !isSo(); at++) await new Promise((done) => realTimeout(done, 10));
  assert.ok(isSo());
}

const places = () => sent.map((one) => one.replace(/\/\d+:/, ":")).sort();

test("every part is sent once, with its bytes, to this page's own origin", async () => {
  const sender = senderOf({ size: 25 }, { size: 0 }, { size: 10 });
  await sender.run();
  assert.deepEqual(places(), ["/0/1:10", "/0/2:10", "/0/3:5", "/2/1:10"]);
  assert.equal(sender.sent(), 35);
});

test("what the portal has is not sent again (mlflow#8539, kubeflow/pipelines#5651)", async () => {
  const sender = senderOf({ size: 25, done: [1, 3] });
  assert.equal(sender.sent(), 15);
  await sender.run();
  assert.deepEqual(places(), ["/0/2:10"]);
});

for (const status of [0, 429, 500, 503]) {
  test(`an answer ${status || "that never comes"} is tried again, and says why nothing moves`, async () => {
    let isAway = true;
    answer = () => (isAway ? status : 200);
    const sender = senderOf({ size: 5 });
    const run = sender.run();
    await until(() => sender.waits !== "");
    isAway = false;
    await run;
    assert.equal(sender.waits, "");
    assert.deepEqual(places(), ["/0/1:5"]);
  });
}

test("an address that is over is signed again", async () => {
  answer = (url) => (url.endsWith("/1") ? 403 : 200);
  await senderOf({ size: 5 }).run();
  assert.deepEqual(sent, ["/0/1/2:5"]);
});

test("what trying again cannot help ends it", async () => {
  answer = () => 404;
  await assert.rejects(senderOf({ size: 100 }).run(), (error) => error instanceof Refusal && error.status === 404);
});

test("a file that can no longer be read is told from a network that is away", async () => {
  answer = () => 0;
  const broken = { size: 5, slice: () => ({ size: 5, arrayBuffer: () => Promise.reject(new Error("gone")), slice: () => null }) } as unknown as File;
  await assert.rejects(senderOf({ size: 5, source: broken }).run(), Unreadable);
});

test("a file that has another size by now is not sent", async () => {
  await assert.rejects(senderOf({ size: 5, source: new File(["longer than that"], "f") }).run(), Unreadable);
  assert.deepEqual(sent, []);
});

test("nothing moves while it is paused, and all of it afterwards", async () => {
  answer = () => null;
  const sender = senderOf({ size: 50 });
  const run = sender.run();
  await new Promise((done) => setTimeout(done, 20));
  sender.pause();
  answer = () => 200;
  await new Promise((done) => setTimeout(done, 50));
  assert.deepEqual(sent, []);
  assert.ok(sender.isPaused);
  sender.resume();
  await run;
  assert.equal(sent.length, 5);
});

test("stopping ends it at once, also while it is paused", async () => {
  answer = () => null;
  for (const isPaused of [false, true]) {
    const sender = senderOf({ size: 50 });
    const run = sender.run();
    await new Promise((done) => setTimeout(done, 20));
    if (isPaused) sender.pause();
    sender.stop();
    await run;
  }
  assert.deepEqual(sent, []);
});

test("each part is signed with the SHA-256 of its bytes, also where the browser has none of its own", async () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto")!;
  const source = new File(["abcdefghijk"], "f");
  const real = globalThis.crypto;
  for (const crypto of [real, { getRandomValues: (bytes: Uint8Array<ArrayBuffer>) => real.getRandomValues(bytes) }]) {
    Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
    digests = [];
    await senderOf({ size: 11, source }).run();
    assert.deepEqual(digests, [
      "72399361da6a7754fec986dca5b7cbaf1c810a28ded4abaf56b2106d06cb78b0",
      "8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a",
    ]);
  }
  Object.defineProperty(globalThis, "crypto", own);
});

test("parts of many files are signed together", async () => {
  await senderOf(...Array.from({ length: 120 }, () => ({ size: 5 }))).run();
  assert.equal(sent.length, 120);
  assert.ok(signed <= 5, `${signed} requests`);
});

test("parts of one file are signed together, not one by one", async () => {
  await senderOf({ size: 400 }).run();
  assert.equal(sent.length, 40);
  assert.ok(signed <= 2, `${signed} requests`);
});

const s3 = (code: string, message: string) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;

const FULL: [number, string, RegExp][] = [
  [507, s3("XMinioStorageFull", "Storage backend has reached its minimum free drive threshold."), /is full \(XMinioStorageFull\)/],
  [403, s3("QuotaExceeded", "Quota exceeded"), /is full \(QuotaExceeded\)/],
  [507, "", /is full \(507\)/],
];
for (const [status, text, words] of FULL) {
  test(`a full store ends the upload with clear words (${words.source}), and it resumes with what is missing`, { timeout: 60_000 }, async (context) => {
    answer = (url) => (url.includes("/0/1/") ? 200 : [status, text]);
    const sender = senderOf({ size: 35 });
    context.after(() => sender.stop());
    const failed = await sender.run().then(() => null, (error: unknown) => error);
    assert.ok(failed instanceof Refusal);
    assert.match(failed.message, words);
    assert.match(failed.remedy, /administrator to free or add space, then resume/);
    assert.equal(failed.code, "storage_full");
    answer = () => 200;
    sent = [];
    await senderOf({ size: 35, done: [1] }).run();
    assert.deepEqual(places(), ["/0/2:10", "/0/3:10", "/0/4:5"]);
  });
}

test("what a store refuses for good is said in its words", async () => {
  answer = () => [404, s3("NoSuchUpload", "The upload does not exist.")];
  await assert.rejects(senderOf({ size: 5 }).run(), { message: "The object store responded with 404 NoSuchUpload: The upload does not exist.", code: "store_NoSuchUpload" });
});

test("a connection that moves nothing for a minute is ended, one that moves is not", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  answer = () => null;
  let problem: unknown = null;
  const run = put({ file: 0, part: 1, method: "PUT", url: "/0/1", headers: {} }, new Blob(["x"]), new AbortController().signal, () => {});
  const ended = run.catch((error: unknown) => (problem = error));
  mock.timers.tick(59_999);
  progress({ loaded: 1 });
  mock.timers.tick(59_999);
  await new Promise((done) => realTimeout(done));
  assert.equal(problem, null);
  mock.timers.tick(1);
  await ended;
  assert.ok(problem instanceof Refusal);
  assert.deepEqual([problem.status, problem.code, problem.message], [0, "stalled", "No data moved for 60 seconds."]);
});

test("a store that stalls on all connections is said on the page and tried again", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let hanging = 0;
  answer = () => (++hanging, null);
  const sender = senderOf({ size: 40 });
  const run = sender.run();
  await until(() => hanging === 4);
  mock.timers.tick(60_000);
  await until(() => sender.waits === "No data moved for 60 seconds.");
  answer = () => 200;
  await until(() => (mock.timers.tick(1_000), sent.length === 4)); // the rests are over at some tick
  await run;
  assert.equal(sender.waits, "");
});
