// Lines that tasks have not finished, such as progress bars: below the log, each replaced by the next, and gone when the
// line itself comes. Not here: where they come from (`reader`).
import { el } from "../dom";
import { runsOf } from "./ansi";

const MOST = 4;

export interface OpenLine {
  line: number;
  text: string;
}

/** What is open of each task: `worker-0` to its line. */
export class OpenLines {
  private readonly lines = new Map<string, OpenLine>();

  get all(): ReadonlyMap<string, OpenLine> {
    return this.lines;
  }

  /** A picture came, of a log of which `next` lines are known. Whether anything is different now. */
  show(task: string, open: OpenLine, next: number): boolean {
    if (open.line < next || !open.text) return this.lines.delete(task);
    this.lines.set(task, open);
    return true;
  }

  /** The log of the task has come to this line. Whether anything is different now. */
  advanced(task: string, next: number): boolean {
    const open = this.lines.get(task);
    return open !== undefined && open.line < next && this.lines.delete(task);
  }

  clear(): void {
    this.lines.clear();
  }
}

/** The element in which they are shown, and a function that shows them. */
export function openLinesBox(): { element: HTMLElement; draw: (lines: ReadonlyMap<string, OpenLine>) => void } {
  const element = el("div", { class: "log-open", role: "region", "aria-label": "Unfinished lines", "aria-live": "off" });
  element.hidden = true;
  const draw = (lines: ReadonlyMap<string, OpenLine>) => {
    const tasks = [...lines.keys()].sort();
    element.hidden = tasks.length === 0;
    element.replaceChildren(...tasks.slice(0, MOST).map((task) => rowOf(task, lines.get(task)?.text ?? "")));
    if (tasks.length > MOST) element.append(el("div", { class: "log-row" }, `and of ${tasks.length - MOST} more tasks`));
  };
  return { element, draw };
}

function rowOf(task: string, text: string): HTMLElement {
  const words = el("span", { class: "log-text" });
  for (const run of runsOf(text)) words.append(run.look ? el("span", { class: run.look }, run.text) : run.text);
  const number = el("span", { class: "log-number", "aria-hidden": "true" }, "…");
  return el("div", { class: "log-row" }, number, el("span", { class: `log-task log-${task.replace(/-\d+$/, "")}` }, task), words);
}
