// Searching the whole log on the server: matches come page by page. The first are looked up at once, the others when one
// has walked through those.
import { runsOf } from "./ansi";
import type { LogPages, Query } from "./pages";
import type { Row } from "./tape";

const AT_ONCE = 1_000;
const AT_FIRST = 5_000;
/** More are not kept in a page. */
export const MOST = 200_000;

export interface Match {
  task: string;
  line: number;
  time: number;
}

export class Search {
  private matches: Match[] = [];
  private readonly known = new Set<string>();
  private next: string | null = null;
  private isDone = false;
  private isClosed = false;
  private at = -1;
  private looking: Promise<void> | null = null;

  constructor(
    private readonly pages: LogPages,
    readonly query: Query,
    private readonly changed: () => void,
    private readonly trouble: (error: unknown) => void,
  ) {}

  /** Look up the first matches: all of them where they are few. */
  run(): Promise<void> {
    return this.lookUp(() => this.matches.length >= AT_FIRST);
  }

  /** Search on until there is enough, the log is at its end, or there are more matches than are kept. */
  private async lookUp(isEnough: () => boolean): Promise<void> {
    while (this.looking) await this.looking;
    this.looking = this.pagesUntil(isEnough).finally(() => (this.looking = null));
    await this.looking;
  }

  private async pagesUntil(isEnough: () => boolean): Promise<void> {
    try {
      while (!this.isOver && !isEnough()) {
        const found = await this.pages.search(this.query, this.next, AT_ONCE);
        if (this.isClosed) return;
        this.add(found.rows);
        this.next = found.next;
        this.isDone = found.next === null;
        this.changed();
      }
    } catch (error) {
      this.isDone = true;
      if (!this.isClosed) this.trouble(error);
    }
  }

  private get isOver(): boolean {
    return this.isDone || this.isClosed || this.matches.length >= MOST;
  }

  /** Lines that have just come and match: they join those that were found. */
  arrived(rows: Row[]): void {
    if (!rows.length || this.matches.length >= MOST) return;
    this.add(rows);
    this.changed();
  }

  close(): void {
    this.isClosed = true;
  }

  /** `3 of 27`, `5,000+`, `none`. */
  get words(): string {
    const count = this.matches.length;
    const known = this.isDone ? count.toLocaleString() : `${count.toLocaleString()}+`;
    if (!count) return this.isDone ? "none" : "searching …";
    return this.at < 0 ? known : `${(this.at + 1).toLocaleString()} of ${known}`;
  }

  get count(): number {
    return this.matches.length;
  }

  /** Begin at the first match at or after this row; where there is none, at the last. */
  startAt(row: Row | undefined): Match | undefined {
    const found = row ? this.matches.findIndex((match) => !isBefore(match, row)) : 0;
    this.at = found < 0 ? this.matches.length - 1 : found;
    return this.matches[this.at];
  }

  /** The next match (1) or the one before (-1), and round at the ends: only there where all are known. */
  async step(by: number): Promise<Match | undefined> {
    const isAtEdge = () => (by > 0 ? this.at >= this.matches.length - 1 : this.at <= 0);
    if (isAtEdge() && !this.isOver) await this.lookUp(() => by > 0 && !isAtEdge());
    if (this.isClosed || !this.matches.length) return undefined;
    this.at = (this.at + by + this.matches.length) % this.matches.length;
    return this.matches[this.at];
  }

  get current(): Match | undefined {
    return this.matches[this.at];
  }

  private add(rows: Row[]): void {
    const here = this.current;
    for (const { task, line, time } of rows) {
      const key = `${task}:${line}`;
      if (this.known.has(key)) continue; // the search and the live log may both bring it
      this.known.add(key);
      this.matches.push({ task, line, time });
    }
    this.matches.sort((a, b) => a.time - b.time || (a.task === b.task ? a.line - b.line : a.task < b.task ? -1 : 1));
    if (here) this.at = this.matches.indexOf(here);
  }
}

function isBefore(match: Match, row: Row): boolean {
  return match.task === row.task ? match.line < row.line : match.time < row.time;
}

/** Whether the expression is in what people see of the line. */
export function isMatch(row: Row, pattern: RegExp): boolean {
  const text = runsOf(row.text).map((run) => run.text).join("");
  return !row.gap && text.search(pattern) >= 0;
}

/** What marks the matches in a line, or null where the expression is not one that browsers know. */
export function patternOf(query: { text: string; regex: boolean }): RegExp | null {
  if (!query.text) return null;
  try {
    return new RegExp(query.regex ? query.text : query.text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
  } catch {
    return null;
  }
}
