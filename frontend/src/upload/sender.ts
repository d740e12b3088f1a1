// Sends the parts of an upload side by side: pauses, resumes, waits for a network that is away, and never sends a part
// that the portal has. Knows nothing of the page.
import { Refusal } from "../api";
import { arrivedOf, lackingOf, rangeOf, restAfter, type PartToSend, type ServerFile } from "./plan";
import { put, sign, type OpenUpload, type Signed } from "./portal";

const PARALLEL = 4; // browsers open six connections to one host; the page keeps two
const SIGNED_AT_ONCE = 50;
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
  private readonly addresses = new Map<string, { at: number; signed: Promise<Map<number, Signed>> }>();
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
    for (let part = this.todo.pop(); part && !this.ended; part = this.todo.pop()) {
      while (!this.ended && !(await this.isSent(part)));
    }
  }

  /** One try. False where another one makes sense, now or after a rest. */
  private async isSent(part: PartToSend): Promise<boolean> {
    await this.paused?.going;
    if (this.ended) return true;
    const key = `${part.file.index}:${part.number}`;
    const { signal } = this.control;
    try {
      const signed = await this.addressOf(part);
      const body = this.bytesOf(part);
      if (signal.aborted) return false;
      this.moving.set(key, 0);
      await put({ ...signed, url: this.here(signed.url) }, body, signal, (bytes) => {
        this.moving.set(key, bytes);
      });
    } catch (error) {
      if (signal.aborted) return false;
      await this.recover(part, error);
      return false;
    } finally {
      this.moving.delete(key);
    }
    const [from, to] = rangeOf(part.file, part.number, this.upload.part_size);
    this.arrived.set(part.file.index, (this.arrived.get(part.file.index) ?? 0) + to - from);
    this.failures = 0;
    this.waits = "";
    return true;
  }

  /** Rest where trying again may help; else raise. */
  private async recover(part: PartToSend, error: unknown): Promise<void> {
    if (!(error instanceof Refusal)) throw error;
    const passes = error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500;
    const outdated = error.status === 403 && this.failures < 5; // an address that is over; a new one is signed
    if (!passes && !outdated) throw error;
    if (error.status === 0) await this.checkReadable(part.file);
    this.addresses.delete(this.batchOf(part));
    this.failures += 1;
    const rest = restAfter(Math.ceil(this.failures / PARALLEL), Math.random());
    this.waits = error.message;
    await restOrOnline(rest, this.control.signal);
  }

  private batchOf(part: PartToSend): string {
    return `${part.file.index}:${Math.floor((part.number - 1) / SIGNED_AT_ONCE)}`;
  }

  /** The part's signed address; asked for together with those of its neighbours. */
  private async addressOf(part: PartToSend): Promise<Signed> {
    const batch = this.batchOf(part);
    let known = this.addresses.get(batch);
    if (!known || Date.now() - known.at > ADDRESS_LIFE) {
      const first = Math.floor((part.number - 1) / SIGNED_AT_ONCE) * SIGNED_AT_ONCE + 1;
      const wanted = lackingOf(part.file).filter((number) => number >= first && number < first + SIGNED_AT_ONCE);
      const signed = sign(this.upload.id, part.file.index, wanted).then(({ urls }) => new Map(urls.map((one) => [one.part, one])));
      signed.catch(() => this.addresses.delete(batch)); // those that wait for it see the error, too
      known = { at: Date.now(), signed };
      this.addresses.set(batch, known);
    }
    const found = (await known.signed).get(part.number);
    if (!found) throw new Refusal(0, "The portal returned the wrong upload URLs.", "");
    if (part.file.parts <= SIGNED_AT_ONCE && part.number === part.file.parts) this.addresses.delete(batch);
    return found;
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
