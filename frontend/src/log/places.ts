// How far one has come in each task's lines: the cursor of a log. Pure arithmetic on line numbers by task.

export type Places = Readonly<Record<string, number>>;

/** So many lines of all tasks together lie before these places. */
export function sum(places: Places): number {
  let total = 0;
  for (const line of Object.values(places)) total += line;
  return total;
}

/** Whether `places` has come at least as far as `goal` in every task. */
export function covers(places: Places, goal: Places): boolean {
  return Object.entries(goal).every(([task, line]) => (places[task] ?? 0) >= line);
}

/** The farther of both, in each task. */
export function farther(one: Places, other: Places): Places {
  const far: Record<string, number> = { ...one };
  for (const [task, line] of Object.entries(other)) far[task] = Math.max(far[task] ?? 0, line);
  return far;
}

export type Fresh = { skip: number } | "known" | "hole";

/** Of `count` lines from line `first` on: how many are known already; or that all are; or that lines before are missing. */
export function freshOf(places: Places, task: string, first: number, count: number): Fresh {
  const next = places[task] ?? 0;
  if (first > next) return "hole";
  return first + count <= next ? "known" : { skip: next - first };
}

export interface Task {
  role: string;
  index: number;
}

export function taskOf(name: string): Task {
  const dash = name.lastIndexOf("-");
  return { role: name.slice(0, dash), index: Number(name.slice(dash + 1)) };
}

export function nameOf(task: Task): string {
  return `${task.role}-${task.index}`;
}
