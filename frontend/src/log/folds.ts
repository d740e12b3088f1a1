// Which rows are folded into one: runs of what frameworks write at every start. A run that was opened, or that has a row
// one is looking for, is shown as it is; one that was opened can be closed again. Not here: which lines those are (`noise`), what a fold looks like (`rows`).
import { isNoise } from "./noise";
import type { Row } from "./tape";

const LONGEST = 128; // rows of one fold, so that what a row is depends on few others

export class Folds {
  private readonly known = new WeakMap<Row, boolean>();
  private readonly opened = new WeakSet<Row>();

  constructor(
    private readonly at: (index: number) => Row | undefined,
    private readonly isWanted: (row: Row) => boolean = () => false,
  ) {}

  /** How many rows the fold that begins here has; 0: a row within one; null: a row that is shown. */
  size(index: number): number | null {
    if (!this.isFolding(index)) return null;
    const { first, end } = this.run(index, (one) => this.isFolding(one));
    if (end - first < 2) return null;
    for (let one = first; one < end; one += 1) if (this.isWanted(this.at(one) as Row)) return null;
    return index === first ? end - first : 0;
  }

  open(index: number): void {
    if (!this.isFolding(index)) return;
    const { first, end } = this.run(index, (one) => this.isFolding(one));
    for (let one = first; one < end; one += 1) this.opened.add(this.at(one) as Row);
  }

  /** How many rows the run that was opened and begins here has; 0: none begins here. */
  openSize(index: number): number {
    if (!this.isOpened(index)) return 0;
    const { first, end } = this.run(index, (one) => this.isOpened(one));
    return index === first && end - first > 1 ? end - first : 0;
  }

  close(index: number): void {
    if (!this.isOpened(index)) return;
    const { first, end } = this.run(index, (one) => this.isOpened(one));
    for (let one = first; one < end; one += 1) this.opened.delete(this.at(one) as Row);
  }

  private run(index: number, belongs: (index: number) => boolean): { first: number; end: number } {
    const block = index - (index % LONGEST);
    let [first, end] = [index, index + 1];
    while (first > block && belongs(first - 1)) first -= 1;
    while (end < block + LONGEST && belongs(end)) end += 1;
    return { first, end };
  }

  private isOpened(index: number): boolean {
    const row = this.at(index);
    return row !== undefined && this.opened.has(row);
  }

  private isFolding(index: number): boolean {
    const row = this.at(index);
    if (!row || row.gap || this.opened.has(row)) return false;
    let noise = this.known.get(row);
    if (noise === undefined) this.known.set(row, (noise = isNoise(row.text)));
    return noise;
  }
}
