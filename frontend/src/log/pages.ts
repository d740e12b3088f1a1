// Pages of a log over HTTP: of one task by line number, or of all tasks by time. Not here: what is kept of them (`tape`).
import { get } from "../api";
import { covers, nameOf, taskOf, type Places, type Task } from "./places";
import type { Page, Row } from "./tape";

export interface Which {
  job: string;
  attempt: number;
  /** `worker-0`; empty: all tasks. */
  task: string;
}

interface LineAnswer extends Task {
  n: number;
  t: number;
  text: string;
}

interface GapAnswer extends Task {
  first_line: number;
  lines: number;
  detail: string;
}

interface LinesAnswer {
  lines: LineAnswer[];
  gaps: GapAnswer[];
  start: Places;
  end: Places;
}

interface SearchAnswer {
  matches: LineAnswer[];
  next: string | null;
}

export interface Found {
  rows: Row[];
  next: string | null;
}

export interface Levels {
  errors: number;
  warnings: number;
  lines: number;
  of: number;
  first_error: (Task & { n: number }) | null;
}

export interface Query {
  text: string;
  regex: boolean;
  level: string;
}

const FEWEST = 20;

export class LogPages {
  constructor(readonly which: Which) {}

  /** The last `count` lines. */
  tail(count: number): Promise<Page> {
    return this.lines({ from: -count, limit: count });
  }

  /** Lines from the `index`-th of the whole log on. */
  from(index: number, count: number): Promise<Page> {
    return this.lines({ from: Math.max(0, index), limit: count });
  }

  after(places: Places, count: number): Promise<Page> {
    const { task } = this.which;
    if (task) return this.from(places[task] ?? 0, count);
    return this.lines({ after: JSON.stringify(places), limit: count });
  }

  /** The lines before these places, up to them without a hole. */
  async before(places: Places, count: number): Promise<Page> {
    const page = await this.linesBefore(places, count);
    if (covers(page.end, places)) return page;
    // The lines are so long that the portal sent fewer of them.
    return count > FEWEST ? this.before(places, Math.floor(count / 5)) : this.filled(page, places);
  }

  around(task: string, line: number, count: number): Promise<Page> {
    if (this.which.task) return this.from(line - Math.floor(count / 3), count);
    return this.lines({ around: `${task}:${line}`, limit: count });
  }

  async search(query: Query, from: string | null, limit: number): Promise<Found> {
    const asked = { q: query.text, regex: query.regex ? 1 : 0, ...(query.level ? { level: query.level } : {}), limit };
    const answer = await get<SearchAnswer>(this.address("search", from === null ? asked : { ...asked, from }));
    return { rows: answer.matches.map(rowOf), next: answer.next };
  }

  levels(): Promise<Levels> {
    return get<Levels>(this.address("levels", {}));
  }

  private linesBefore(places: Places, count: number): Promise<Page> {
    const { task } = this.which;
    if (!task) return this.lines({ before: JSON.stringify(places), limit: count });
    const end = places[task] ?? 0;
    const first = Math.max(0, end - count);
    return this.lines({ from: first, limit: end - first });
  }

  private async filled(page: Page, goal: Places): Promise<Page> {
    let whole = page;
    while (!covers(whole.end, goal)) {
      const more = await this.after(whole.end, FEWEST);
      if (!more.rows.length) break;
      const rows = more.rows.filter((row) => row.line < (goal[row.task] ?? 0));
      whole = { rows: [...whole.rows, ...rows], start: whole.start, end: more.end };
    }
    return { ...whole, end: goal };
  }

  private async lines(query: Record<string, string | number>): Promise<Page> {
    return pageOf(await get<LinesAnswer>(this.address("lines", query)));
  }

  private address(what: string, query: Record<string, string | number>): string {
    const { job, attempt, task } = this.which;
    const all: Record<string, string | number> = { attempt, ...(task ? { ...taskOf(task) } : {}), ...query };
    const words = Object.entries(all).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return `jobs/${job}/logs/${what}/?${words.join("&")}`;
  }
}

function rowOf(line: LineAnswer): Row {
  return { task: nameOf(line), line: line.n, time: line.t, text: line.text };
}

/** The answer as rows, with a row for each gap where its lines would be. */
export function pageOf(answer: LinesAnswer): Page {
  const rows = answer.lines.map(rowOf);
  for (const gap of answer.gaps) {
    const task = nameOf(gap);
    const first = Math.max(gap.first_line, answer.start[task] ?? 0);
    const end = Math.min(gap.first_line + gap.lines, answer.end[task] ?? 0);
    if (end <= first) continue;
    const next = rows.findIndex((row) => row.task === task && row.line >= end);
    const at = next < 0 ? rows.length : next;
    rows.splice(at, 0, { task, line: first, time: rows[at]?.time ?? rows[at - 1]?.time ?? 0, text: gap.detail, gap: end - first });
  }
  return { rows, start: answer.start, end: answer.end };
}
