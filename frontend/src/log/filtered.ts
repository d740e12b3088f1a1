// Only the lines of a level, found by the server in the whole log; new ones join as they come.
import type { LogPages } from "./pages";
import { isAtLeast, levelOf, type Level } from "./levels";
import type { Row } from "./tape";

const AT_ONCE = 1_000;
export const MOST = 20_000;

export class FilteredLog {
  private rows: Row[] = [];
  private next: string | null = null;
  private isDone = false;
  private isClosed = false;

  constructor(
    private readonly pages: LogPages,
    readonly level: Level,
    private readonly changed: () => void,
    private readonly trouble: (error: unknown) => void,
  ) {}

  get total(): number {
    return this.rows.length;
  }

  /** Whether the search is still running. */
  get isSearching(): boolean {
    return !this.isDone;
  }

  get isFull(): boolean {
    return this.rows.length >= MOST;
  }

  at(index: number): Row | undefined {
    return this.rows[index];
  }

  want(): void {
    // Everything is fetched as it is found.
  }

  async run(): Promise<void> {
    try {
      while (!this.isDone && !this.isClosed) {
        const found = await this.pages.search({ text: "", regex: false, level: this.level }, this.next, AT_ONCE);
        if (this.isClosed) return;
        this.add(found.rows);
        this.next = found.next;
        this.isDone = found.next === null || this.isFull;
        this.changed();
      }
    } catch (error) {
      this.isDone = true;
      this.trouble(error);
    }
  }

  arrived(rows: Row[]): void {
    const mine = rows.filter((row) => !row.gap && isAtLeast(levelOf(row.text), this.level));
    if (!mine.length || this.isFull) return;
    this.add(mine);
    this.changed();
  }

  close(): void {
    this.isClosed = true;
  }

  /** Lines that the search and the live log both bring are there once. */
  private add(rows: Row[]): void {
    const known = new Set(this.rows.slice(-AT_ONCE * 2).map((row) => `${row.task}:${row.line}`));
    const fresh = rows.filter((row) => !known.has(`${row.task}:${row.line}`));
    this.rows = [...this.rows, ...fresh].sort((a, b) => a.time - b.time).slice(0, MOST);
  }
}
