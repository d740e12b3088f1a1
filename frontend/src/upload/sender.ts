// Sends the parts of an upload side by side: pauses, resumes, waits for a network that is away, and never sends a part
// that the portal has. Knows nothing of the page.
import { Refusal } from "../api";
import { sha256Of } from "./checksum";
import { arrivedOf, lackingOf, rangeOf, restAfter, type PartToSend, type ServerFile } from "./plan";
import { put, sign, type OpenUpload, type Signed } from "./portal";

const PARALLEL = 4; // browsers open six connections to one host; the page keeps two
const SIGNED_AT_ONCE = 50;
const HASHED_AT_ONCE = 16 << 20;
const STORE_TRIES = 3; // after so many without an answer the store is named
const ADDRESS_LIFE = 10 * 60_000; // they are good for a quarter of an hour

/** A file that cannot be read any more: it was changed, moved or deleted while it was sent. */
export class Unreadable extends Error {
  constructor(readonly file: ServerFile) {
    super("The file was changed, moved or deleted after you selected it. Select it again.");
  }
}

export class Sender {
  /** Why nothing moves at the moment; empty while parts are moving. */
  waits = "";
  /** Bytes of all files. */
  readonly size: number;

  private readonly arrived = new Map<number, number>();
  private readonly moving = new Map<string, number>();
  private readonly addresses = new Map<string, { at: number; signed: Promise<Signed> }>();
  private readonly todo: PartToSend[] = [];
  private control = new AbortController();
  private paused: { go: () => void; going: Promise<void> } | null = null;
  private ended = false;
  private failures = 0;

  constructor(
    private readonly upload: OpenUpload,
    private readonly sources: Map<number, File>,
    private readonly here: (url: string) => string,
  ) {
    this.size = upload.files.reduce((sum, file) => sum + file.size, 0);
    for (const file of upload.files) {
      this.arrived.set(file.index, arrivedOf(file, upload.part_size));
      for (const number of lackingOf(file)) this.todo.push({ file, number });
    }
    this.todo.reverse(); // taken from the end
  }

  /** Resolves when every part has arrived, or after `stop`. Raises `Refusal` or `Unreadable`, and then sends nothing more. */
  async run(): Promise<void> {
    try {
      await Promise.all(Array.from({ length: PARALLEL }, () => this.sendNext()));
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  pause(): void {
    if (this.paused) return;
    let release = (): void => {};
    this.paused = { going: new Promise((done) => (release = done)), go: () => release() };
    this.abort();
  }

  resume(): void {
    this.paused?.go();
    this.paused = null;
  }

  stop(): void {
    this.ended = true;
    this.resume();
    this.abort();
  }

  get isPaused(): boolean {
    return this.paused !== null;
  }

  /** Bytes of a file that have arrived or are on their way. */
  sentOf(file: ServerFile): number {
    let sent = this.arrived.get(file.index) ?? 0;
    for (const [key, bytes] of this.moving) if (key.startsWith(`${file.index}:`)) sent += bytes;
    return Math.min(sent, file.size);
  }

  sent(): number {
    let sum = 0;
    for (const bytes of this.arrived.values()) sum += bytes;
    for (const bytes of this.moving.values()) sum += bytes;
    return sum;
  }

  isMoving(file: ServerFile): boolean {
    return [...this.moving.keys()].some((key) => key.startsWith(`${file.index}:`));
  }

  private async sendNext(): Promise<void> {
    for (let part = this.next(); part && !this.ended; part = this.next()) {
      while (!this.ended && !(await this.isSent(part)));
    }
  }

  /** Taken together with its address, so that the next to be taken has one. */
  private next(): PartToSend | undefined {
    const part = this.todo.pop();
    if (part && !this.hasAddress(part)) this.signFrom(part);
    return part;
  }

  /** One try. False where another one makes sense, now or after a rest. */
  private async isSent(part: PartToSend): Promise<boolean> {
    await this.paused?.going;
    if (this.ended) return true;
    const key = keyOf(part);
    const { signal } = this.control;
    let address = "";
    try {
      const signed = await this.addressOf(part);
      const body = this.bytesOf(part);
      if (signal.aborted) return false;
      this.moving.set(key, 0);
      address = this.here(signed.url);
      await put({ ...signed, url: address }, body, signal, (bytes) => {
        this.moving.set(key, bytes);
      });
    } catch (error) {
      if (signal.aborted) return false;
      await this.recover(part, error, address);
      return false;
    } finally {
      this.moving.delete(key);
    }
    const [from, to] = rangeOf(part.file, part.number, this.upload.part_size);
    this.arrived.set(part.file.index, (this.arrived.get(part.file.index) ?? 0) + to - from);
    this.addresses.delete(key);
    this.failures = 0;
    this.waits = "";
    return true;
  }

  /** Rest where trying again may help; else raise. */
  private async recover(part: PartToSend, error: unknown, address: string): Promise<void> {
    if (!(error instanceof Refusal) || error.code === "storage_full") throw error; // space takes a person to make
    const passes = error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500;
    // An address that has expired, or bytes that were damaged on their way: both are signed again.
    const outdated = (error.status === 403 || error.status === 400) && this.failures < 5;
    if (!passes && !outdated) throw error;
    if (error.status === 0) await this.checkReadable(part.file);
    this.addresses.delete(keyOf(part));
    this.failures += 1;
    const rest = restAfter(Math.ceil(this.failures / PARALLEL), Math.random());
    const isSilent = error.status === 0 && error.code !== "stalled" && this.failures >= STORE_TRIES;
    this.waits = (isSilent && silenceOf(address)) || error.message;
    await restOrOnline(rest, this.control.signal);
  }

  /** The part's signed address; asked for together with those of the parts that follow. */
  private addressOf(part: PartToSend): Promise<Signed> {
    if (!this.hasAddress(part)) this.signFrom(part);
    return this.addresses.get(keyOf(part))!.signed;
  }

  private hasAddress(part: PartToSend): boolean {
    const known = this.addresses.get(keyOf(part));
    return known !== undefined && Date.now() - known.at <= ADDRESS_LIFE;
  }

  private signFrom(part: PartToSend): void {
    const batch = [part];
    let size = this.sizeOf(part);
    for (let at = this.todo.length - 1; at >= 0 && batch.length < SIGNED_AT_ONCE; at--) {
      const next = this.todo[at]!;
      if (this.hasAddress(next)) continue;
      size += this.sizeOf(next);
      if (size > HASHED_AT_ONCE) break;
      batch.push(next);
    }
    const signed = this.sign(batch);
    for (const one of batch) {
      const key = keyOf(one);
      const mine = signed.then((found) => {
        const address = found.get(key);
        if (!address) throw new Refusal(0, "The portal returned the wrong upload URLs.", "");
        return address;
      });
      mine.catch(() => this.addresses.delete(key)); // those that wait for it see the error, too
      this.addresses.set(key, { at: Date.now(), signed: mine });
    }
  }

  private async sign(batch: PartToSend[]): Promise<Map<string, Signed>> {
    const parts = [];
    for (const one of batch) parts.push({ file: one.file.index, part: one.number, sha256: await this.checksumOf(one) });
    const { urls } = await sign(this.upload.id, parts);
    return new Map(urls.map((one) => [`${one.file}:${one.part}`, one]));
  }

  private async checksumOf(part: PartToSend): Promise<string> {
    const bytes = this.bytesOf(part);
    try {
      return await sha256Of(bytes);
    } catch {
      throw new Unreadable(part.file);
    }
  }

  private sizeOf({ file, number }: PartToSend): number {
    const [from, to] = rangeOf(file, number, this.upload.part_size);
    return to - from;
  }

  /** The part's bytes. Not read here: the browser streams them from the disk. */
  private bytesOf({ file, number }: PartToSend): Blob {
    return this.sourceOf(file).slice(...rangeOf(file, number, this.upload.part_size));
  }

  /** A file that is gone fails like a network that is away; this tells them apart. */
  private async checkReadable(file: ServerFile): Promise<void> {
    try {
      await this.sourceOf(file).slice(0, 1).arrayBuffer();
    } catch {
      throw new Unreadable(file);
    }
  }

  private sourceOf(file: ServerFile): File {
    const source = this.sources.get(file.index);
    if (!source || source.size !== file.size) throw new Unreadable(file);
    return source;
  }

  private abort(): void {
    this.control.abort();
    this.control = new AbortController();
    this.waits = "";
  }
}

/** What to say of a store with an address of its own that does not answer; empty where the portal takes the bytes. A
 * browser does not say whether the store is away or does not allow this page. */
function silenceOf(address: string): string {
  if (!/^https?:/.test(address)) return "";
  return (
    `The object store at ${new URL(address).origin} does not answer this page. If that lasts, ask an administrator to ` +
    `allow the origin ${location.origin} there (CORS: methods GET and PUT, all headers).`
  );
}

function keyOf(part: PartToSend): string {
  return `${part.file.index}:${part.number}`;
}

function restOrOnline(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      done();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end, { once: true });
    signal.addEventListener("abort", end, { once: true });
  });
}
