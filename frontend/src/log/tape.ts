// The stretch of a log that a page holds: rows that follow each other, few enough for any memory. It is lengthened at
// either end, and shortened at the other. Rows before and after it are known by number only. Not here: where lines come
// from (`pages`), what is seen of them (`pane`).
import { sum, type Places } from "./places";

export interface Row {
  task: string;
  /** From 0. Of a gap: its first line. */
  line: number;
  time: number;
  text: string;
  /** So many lines are missing here; `text` says why. */
  gap?: number;
}

/** Consecutive rows: those from `start` up to, not including, `end`. */
export interface Page {
  rows: Row[];
  start: Places;
  end: Places;
}

export interface Bounds {
  rows: number;
  characters: number;
}

export const BOUNDS: Bounds = { rows: 20_000, characters: 6_000_000 };

export class Tape {
  private rows: Row[] = [];
  private from: Places = {};
  private to: Places = {};
  private lines = 0;
  private characters = 0;

  constructor(private readonly bounds: Bounds = BOUNDS) {}

  /** Where the held rows begin and end, by task. */
  get start(): Places {
    return this.from;
  }

  get end(): Places {
    return this.to;
  }

  /** The index of the first held row in the whole log. */
  get first(): number {
    return sum(this.from);
  }

  /** The index after the last held row. */
  get last(): number {
    return this.first + this.rows.length;
  }

  /** How many rows the whole log has, with those that are not held. */
  get total(): number {
    return this.last + Math.max(0, this.lines - sum(this.to));
  }

  get isEmpty(): boolean {
    return this.rows.length === 0;
  }

  /** The row at an index of the whole log; undefined where it is not held. */
  at(index: number): Row | undefined {
    return this.rows[index - this.first];
  }

  held(): readonly Row[] {
    return this.rows;
  }

  /** The log is known to have so many lines. */
  grow(lines: number): void {
    this.lines = Math.max(this.lines, lines);
  }

  /** Hold this page and nothing else. */
  replace(page: Page): void {
    this.rows = page.rows.slice();
    this.from = page.start;
    this.to = page.end;
    this.characters = charactersOf(this.rows);
    this.grow(sum(page.end));
    this.shorten("back");
  }

  /** Add rows that follow; drops the oldest where there are too many. Returns by how much the index of every row held
   *  has changed: a gap is one row, but as many lines as are missing. */
  append(rows: Row[], end: Places): number {
    for (const row of rows) this.rows.push(row);
    this.to = end;
    this.characters += charactersOf(rows);
    this.grow(sum(end));
    const last = this.last;
    this.shorten("front");
    return this.last - last;
  }

  /** Add a page that comes before; drops the newest where there are too many. Returns what `append` does. */
  prepend(page: Page): number {
    const before = this.first;
    this.rows = [...page.rows, ...this.rows];
    this.from = page.start;
    this.characters += charactersOf(page.rows);
    const shift = this.first + page.rows.length - before;
    this.shorten("back");
    return shift;
  }

  /** The index of a task's line, where it is held; of a gap's where the line lies in it. */
  indexOf(task: string, line: number): number | undefined {
    const place = this.rows.findIndex((row) => row.task === task && line >= row.line && line < row.line + (row.gap ?? 1));
    return place < 0 ? undefined : this.first + place;
  }

  private shorten(side: "front" | "back"): void {
    let drop = Math.max(0, this.rows.length - this.bounds.rows);
    let left = this.characters;
    for (let i = 0; i < this.rows.length - 1; i += 1) {
      const row = this.rows[side === "front" ? i : this.rows.length - 1 - i] as Row;
      if (i >= drop && left <= this.bounds.characters) break;
      left -= row.text.length;
      drop = Math.max(drop, i + 1);
    }
    if (!drop) return;
    // A good deal at once: dropping a few at each new line would copy the whole list each time.
    drop = Math.min(this.rows.length - 1, drop + Math.floor(this.bounds.rows / 20));
    const gone = side === "front" ? this.rows.splice(0, drop) : this.rows.splice(-drop);
    this.characters -= charactersOf(gone);
    if (side === "front") this.from = after(this.from, gone);
    else this.to = before(this.to, gone);
  }
}

function charactersOf(rows: readonly Row[]): number {
  let count = 0;
  for (const row of rows) count += row.text.length;
  return count;
}

function after(start: Places, gone: readonly Row[]): Places {
  const places: Record<string, number> = { ...start };
  for (const row of gone) places[row.task] = row.line + (row.gap ?? 1);
  return places;
}

function before(end: Places, gone: readonly Row[]): Places {
  const places: Record<string, number> = { ...end };
  for (let i = gone.length - 1; i >= 0; i -= 1) {
    const row = gone[i] as Row;
    places[row.task] = row.line;
  }
  return places;
}
