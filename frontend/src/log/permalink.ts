// Addresses of lines: `#worker-0:L123` and `#worker-0:L10-L20`. Lines count from 1 there, as people count; in the
// protocol they count from 0.

export interface Lines {
  task: string;
  /** First and last line, from 0, both included. */
  first: number;
  last: number;
}

const FORM = /^#?([a-z]+-\d{1,6}):L(\d{1,15})(?:-L?(\d{1,15}))?$/;

/** The lines that a hash names, or null. */
export function linesOf(hash: string): Lines | null {
  const found = FORM.exec(hash);
  if (!found) return null;
  const one = Number(found[2]);
  const other = found[3] === undefined ? one : Number(found[3]);
  const first = Math.min(one, other) - 1;
  if (first < 0) return null;
  return { task: found[1] ?? "", first, last: Math.max(one, other) - 1 };
}

export function hashOf({ task, first, last }: Lines): string {
  return first === last ? `#${task}:L${first + 1}` : `#${task}:L${first + 1}-L${last + 1}`;
}

export function holds(lines: Lines | null, task: string, line: number): boolean {
  return lines !== null && lines.task === task && line >= lines.first && line <= lines.last;
}

/** From the line that was chosen first to this one. Lines of another task start a new range. */
export function extended(from: Lines | null, task: string, line: number): Lines {
  if (!from || from.task !== task) return { task, first: line, last: line };
  return { task, first: Math.min(from.first, line), last: Math.max(from.first, line) };
}
