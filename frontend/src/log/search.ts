// Searching the whole log on the server: matches come page by page, and one walks through those that are known.
import type { LogPages, Query } from "./pages";
import type { Row } from "./tape";

const AT_ONCE = 1_000;
export const MOST = 5_000;

export interface Match {
  task: string;
  line: number;
  time: number;
}

export class Search {
  private matches: Match[] = [];
  private isDone = false;
  private isClosed = false;
  private at = -1;

  constructor(
    private readonly pages: LogPages,
    readonly query: Query,
    private readonly changed: () => void,
    private readonly trouble: (error: unknown) => void,
  ) {}

  /** Search to the end, or until there are more matches than anybody walks through. */
  async run(): Promise<void> {
    let next: string | null = null;
    try {
      do {
        const found = await this.pages.search(this.query, next, AT_ONCE);
        if (this.isClosed) return;
        this.add(found.rows);
        next = found.next;
        this.isDone = next === null;
        this.changed();
      } while (next !== null && this.matches.length < MOST);
    } catch (error) {
      this.isDone = true;
      if (!this.isClosed) this.trouble(error);
    }
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

  /** The next match (1) or the one before (-1), and round at the ends. */
  step(by: number): Match | undefined {
    if (!this.matches.length) return undefined;
    this.at = (this.at + by + this.matches.length) % this.matches.length;
    return this.matches[this.at];
  }

  get current(): Match | undefined {
    return this.matches[this.at];
  }

  private add(rows: Row[]): void {
    const here = this.current;
    for (const { task, line, time } of rows) this.matches.push({ task, line, time });
    this.matches.sort((a, b) => a.time - b.time || (a.task === b.task ? a.line - b.line : a.task < b.task ? -1 : 1));
    if (here) this.at = this.matches.indexOf(here);
  }
}

function isBefore(match: Match, row: Row): boolean {
  return match.task === row.task ? match.line < row.line : match.time < row.time;
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
