// The log as one reads it: a stretch of it is held, what is looked at is fetched, and new lines come in over a WebSocket.
// It knows how far the log has come (`live`) apart from how far the held stretch reaches: a reader elsewhere keeps no
// new lines, and a reader that returns gets them over HTTP. So no line is lost, doubled, or kept for nothing.
import { keepConnected } from "../sockets";
import { OpenLines, type OpenLine } from "./open_lines";
import type { LogPages } from "./pages";
import { covers, farther, freshOf, nameOf, sum, taskOf, type Places } from "./places";
import { Tape, type Page, type Row } from "./tape";

const PAGE = 1_000;
const AHEAD = 150;
const FAR = 2 * PAGE;
const COALESCE_MS = 100;
const CATCH_UP = 8;

export type Connection = "idle" | "live" | "lost" | "ended" | "refused";

interface Message {
  type: string;
  role: string;
  index: number;
  first: number;
  lines: [number, string][];
  count: number;
  detail: string;
  line: number;
  text: string;
}

export interface Listener {
  /** Rows have come or gone; the index of every row held has changed by `shift`. */
  changed: (shift: number) => void;
  connection: (state: Connection) => void;
  trouble: (error: unknown) => void;
  /** Lines that have just come, whether they are held or not, after so many that there were before. */
  arrived: (rows: Row[], before: number) => void;
  /** The lines that are not finished have changed. */
  opened: (lines: ReadonlyMap<string, OpenLine>) => void;
}

export class LogReader {
  readonly tape = new Tape();
  /** Whether the reader wants new lines to be held as they come. */
  following = true;
  private live: Places = {};
  private pending: Row[] = [];
  private timer = 0;
  private busy = false;
  private readonly open = new OpenLines();
  private leave: () => void = () => {};

  constructor(
    private readonly pages: LogPages,
    private readonly listener: Listener,
  ) {}

  get total(): number {
    return this.tape.total;
  }

  at(index: number): Row | undefined {
    return this.tape.at(index);
  }

  /** Rows from `first` to `end` are visible: fetch those that are missing. */
  want(first: number, end: number): void {
    if (this.busy || this.tape.isEmpty) return;
    const { tape } = this;
    if (end < tape.first - FAR || first > tape.last + FAR) {
      void this.work(async () => this.hold(await this.pages.from(first - Math.floor(PAGE / 3), PAGE)));
    } else if (first - AHEAD < tape.first && tape.first > 0) {
      void this.work(() => this.earlier());
    } else if (end + AHEAD > tape.last && tape.last < tape.total && !this.pending.length) {
      void this.work(() => this.later());
    }
  }

  /** Hold the end of the log, and keep holding new lines. */
  async toEnd(): Promise<void> {
    this.following = true;
    if (this.isAtEnd() && (!this.tape.isEmpty || this.total === 0)) return;
    await this.work(async () => {
      this.hold(await this.pages.tail(PAGE));
      for (let i = 0; i < CATCH_UP && !this.isAtEnd(); i += 1) await this.later();
    });
  }

  async toStart(): Promise<void> {
    this.following = false;
    if (this.tape.first > 0) await this.work(async () => this.hold(await this.pages.from(0, PAGE)));
  }

  /** Hold a line and what is around it. Returns its index, undefined where there is no such line. */
  async toLine(task: string, line: number): Promise<number | undefined> {
    this.following = false;
    const known = this.tape.indexOf(task, line);
    if (known !== undefined) return known;
    await this.work(async () => this.hold(await this.pages.around(task, line, PAGE)));
    return this.tape.indexOf(task, line);
  }

  /** The log is known to be so long. */
  expect(lines: Places): void {
    this.live = farther(this.live, lines);
    this.tape.grow(sum(this.live));
  }

  /** Follow the log from its newest known line on. */
  connect(): void {
    const { job, attempt, task } = this.pages.which;
    const address = () => {
      const which = task ? `&role=${taskOf(task).role}&index=${taskOf(task).index}` : "";
      const from = task ? String(this.live[task] ?? 0) : JSON.stringify(this.live);
      return `/ws/jobs/${job}/logs/?attempt=${attempt}${which}&from=${encodeURIComponent(from)}`;
    };
    this.leave = keepConnected({
      address,
      message: (message: Message) => this.take(message),
      state: (connected) => this.listener.connection(connected ? "live" : "lost"),
      closed: (code) => {
        this.open.clear();
        this.listener.opened(this.open.all);
        this.listener.connection(code === 1000 ? "ended" : "refused");
      },
    });
  }

  close(): void {
    this.leave();
    clearTimeout(this.timer);
  }

  private take(message: Message): void {
    if (message.type === "open") {
      const name = nameOf(message);
      if (this.open.show(name, message, this.live[name] ?? 0)) this.listener.opened(this.open.all);
    }
    if (message.type !== "lines" && message.type !== "gap") return;
    const task = nameOf(message);
    const count = message.type === "gap" ? message.count : message.lines.length;
    const fresh = freshOf(this.live, task, message.first, count);
    if (fresh === "known") return;
    const wasAtEnd = this.isAtEnd();
    const skip = fresh === "hole" ? 0 : fresh.skip;
    const rows: Row[] =
      message.type === "gap"
        ? [{ task, line: message.first + skip, time: Date.now(), text: message.detail, gap: count - skip }]
        : message.lines.slice(skip).map(([time, text], i) => ({ task, line: message.first + skip + i, time, text }));
    const before = sum(this.live);
    this.live = { ...this.live, [task]: message.first + count };
    this.listener.arrived(rows, before);
    if (this.open.advanced(task, message.first + count)) this.listener.opened(this.open.all);
    if (this.following && wasAtEnd) for (const row of rows) this.pending.push(row);
    this.timer ||= window.setTimeout(() => this.flush(), COALESCE_MS);
  }

  /** Hold what has come in, ordered by time: tasks come one after the other, their lines belong side by side. */
  private flush(): void {
    this.timer = 0;
    let shift = 0;
    if (this.pending.length) {
      const rows = this.pending.sort((a, b) => a.time - b.time);
      this.pending = [];
      shift = this.tape.append(rows, this.live);
    }
    this.tape.grow(sum(this.live));
    this.listener.changed(shift);
  }

  /** Whether the held stretch, with what is about to be added, reaches the newest line. */
  private isAtEnd(): boolean {
    return this.pending.length > 0 || covers(this.tape.end, this.live);
  }

  private hold(page: Page): void {
    this.settle();
    this.tape.replace(page);
    this.live = farther(this.live, page.end);
    this.tape.grow(sum(this.live));
    this.listener.changed(0);
  }

  private async earlier(): Promise<void> {
    const start = this.tape.start;
    const page = await this.pages.before(start, PAGE);
    this.settle();
    if (this.tape.start === start) this.listener.changed(this.tape.prepend(page));
  }

  private async later(): Promise<void> {
    const end = this.tape.end;
    const page = await this.pages.after(end, PAGE);
    this.settle();
    if (this.tape.end !== end) return;
    this.live = farther(this.live, page.end);
    const shift = this.tape.append(page.rows, farther(end, page.end));
    this.tape.grow(sum(this.live));
    this.listener.changed(shift);
  }

  /** Before the stretch changes otherwise: hold what has come in. */
  private settle(): void {
    if (this.pending.length) {
      clearTimeout(this.timer);
      this.flush();
    }
  }

  private async work(action: () => Promise<void>): Promise<void> {
    while (this.busy) await new Promise((done) => setTimeout(done, 20));
    this.busy = true;
    try {
      await action();
    } catch (error) {
      this.listener.trouble(error);
    } finally {
      this.busy = false;
    }
  }
}
