// One line of a log as elements. Whatever a script wrote is text here, never markup.
import { el } from "../dom";
import { runsOf, type Run } from "./ansi";
import { levelOf } from "./levels";
import { linked, type Link } from "./links";
import type { Row } from "./tape";
import { inFull, zone } from "../times";

const LONGEST = 5_000;

export interface Marks {
  /** What is searched for, to be marked; null: nothing. */
  pattern: RegExp | null;
}

export function rowElement(row: Row, marks: Marks): HTMLElement {
  if (row.gap) {
    const words = `${row.gap.toLocaleString()} ${row.gap === 1 ? "line" : "lines"} dropped: ${row.text}`;
    return el("div", { class: "log-row log-gap" }, number(row), el("span", { class: "log-text" }, words));
  }
  const level = levelOf(row.text);
  const time = new Date(row.time);
  return el(
    "div",
    level === "error" || level === "warning" ? { class: "log-row", "data-level": level } : { class: "log-row" },
    number(row),
    el("time", { class: "log-time", datetime: time.toISOString(), title: inFull(time) }, clock(time)),
    el("span", { class: `log-task log-${row.task.replace(/-\d+$/, "")}` }, row.task),
    textElement(row, marks, LONGEST),
  );
}

/** One row in place of the `count` that begin with this one. */
export function foldElement(row: Row, count: number, open: () => void): HTMLElement {
  const button = el("button", { type: "button", class: "log-more", "aria-expanded": "false" }, `${count} lines of TensorFlow’s start-up`);
  button.addEventListener("click", open);
  const element = rowElement({ ...row, text: "" }, { pattern: null });
  element.querySelector(".log-text")?.replaceWith(el("span", { class: "log-text" }, button));
  element.classList.add("log-fold");
  element.dataset.count = String(count);
  return element;
}

/** The first row of a run of `count` that was opened, with a button that closes it. */
export function openedElement(row: Row, count: number, marks: Marks, close: () => void): HTMLElement {
  const button = el("button", { type: "button", class: "log-more log-less", "aria-expanded": "true" }, `Fold these ${count} lines`);
  button.addEventListener("click", close);
  const element = rowElement(row, marks);
  element.querySelector(".log-text")?.before(button);
  element.dataset.open = String(count);
  return element;
}

/** The text again, where what is searched for has changed. */
export function remark(element: HTMLElement, row: Row, marks: Marks): void {
  const old = element.querySelector(".log-text");
  if (!row.gap && old) old.replaceWith(textElement(row, marks, LONGEST));
}

/** All tasks together are numbered through: the index of a row changes where lines come in before it. */
export function renumber(element: HTMLElement, row: Row, number: number): void {
  const place = element.firstElementChild;
  if (!place || place.textContent === String(number)) return;
  place.textContent = String(number);
  const own = `ine ${row.line + 1} of ${row.task}`;
  place.setAttribute("aria-label", number === row.line + 1 ? `L${own}` : `Line ${number} of the log, l${own}`);
}

function number(row: Row): HTMLElement {
  const hash = `#${row.task}:L${row.line + 1}`;
  return el("a", { class: "log-number", href: hash, tabindex: "-1", title: `${row.task}, line ${row.line + 1}`, "aria-label": `Line ${row.line + 1} of ${row.task}` }, String(row.line + 1));
}

function textElement(row: Row, marks: Marks, most: number): HTMLElement {
  const text = row.text.length > most ? row.text.slice(0, most) : row.text;
  const element = el("span", { class: "log-text" });
  let link: Link | null = null;
  let place = element;
  for (const { run, link: next } of linked(marked(runsOf(text), marks.pattern))) {
    if (next !== link) {
      link = next;
      place = element;
      if (link) element.append((place = el("a", { class: "log-link", href: link.href, target: "_blank", rel: "noopener noreferrer nofollow" })));
    }
    if (!run.look && !run.isMarked) place.append(run.text);
    else place.append(el(run.isMarked ? "mark" : "span", run.look ? { class: run.look } : {}, run.text));
  }
  if (row.text.length > most) {
    const more = el("button", { type: "button", class: "log-more" }, `… ${(row.text.length - most).toLocaleString()} more characters`);
    more.addEventListener("click", () => element.replaceWith(textElement(row, marks, Infinity)));
    element.append(more);
  }
  return element;
}

interface MarkedRun extends Run {
  isMarked: boolean;
}

/** The runs cut where what is searched for begins and ends. */
export function marked(runs: Run[], pattern: RegExp | null): MarkedRun[] {
  const plain = runs.map((run) => ({ ...run, isMarked: false }));
  if (!pattern) return plain;
  const text = runs.map((run) => run.text).join("");
  const edges: [number, number][] = [];
  for (const found of text.matchAll(pattern)) if (found[0]) edges.push([found.index, found.index + found[0].length]);
  if (!edges.length) return plain;
  const cut: MarkedRun[] = [];
  let start = 0;
  for (const run of runs) {
    let at = start;
    const end = start + run.text.length;
    while (at < end) {
      const edge = edges.find(([, edgeEnd]) => edgeEnd > at);
      const isMarked = edge !== undefined && edge[0] <= at;
      const until = Math.min(end, edge === undefined ? end : isMarked ? edge[1] : edge[0]);
      cut.push({ text: run.text.slice(at - start, until - start), look: run.look, isMarked });
      at = until;
    }
    start = end;
  }
  return cut;
}

let inZone: Intl.DateTimeFormat | undefined;

/** `09:58:45.123`, in the zone that the reader chose. */
function clock(time: Date): string {
  inZone ??= new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hourCycle: "h23",
    timeZone: zone(),
  });
  return inZone.format(time);
}
