// The chosen files with how far each has come, and what is wrong with it. Of very many, those that matter now.
import { el, fill } from "../dom";
import { bytes } from "../words";

const MOST = 200;

export interface FileRow {
  path: string;
  size: number;
  sent: number;
  isMoving: boolean;
  fault: string;
}

/** `sending`: bars and states are shown, not only names and sizes. */
export function showFiles(list: Element, rows: FileRow[], sending: boolean): void {
  const faulty = rows.filter((row) => row.fault);
  const others = rows.filter((row) => !row.fault);
  // A short list keeps its order. Of a long one the moving files are worth a look; the rest is counted.
  const shown = others.length <= MOST ? others : sending ? others.filter((row) => row.isMoving) : others.slice(0, MOST);
  const items = [...faulty.slice(0, MOST), ...shown].map((row) => item(row, sending));
  const unshown = rows.length - items.length;
  if (unshown > 0) items.push(el("li", { class: "text-secondary" }, rest(others, shown, unshown, sending)));
  fill(list, ...items);
}

function rest(others: FileRow[], shown: FileRow[], unshown: number, sending: boolean): string {
  if (!sending) return `… and ${unshown.toLocaleString()} more files`;
  const done = others.filter((row) => row.sent >= row.size && !shown.includes(row)).length;
  return `${done.toLocaleString()} files uploaded, ${(unshown - done).toLocaleString()} queued`;
}

function item(row: FileRow, sending: boolean): HTMLElement {
  const isDone = sending && row.sent >= row.size;
  const state = row.fault ? "" : isDone ? "✓ Uploaded" : sending && row.sent ? `${Math.floor((100 * row.sent) / row.size)} %` : sending ? "Queued" : "";
  const head = el(
    "div",
    { class: "upload-file-head" },
    el("bdi", { class: "upload-path" }, row.path),
    el("span", { class: isDone ? "upload-state upload-done" : "upload-state" }, state),
    el("span", { class: "upload-size text-secondary" }, bytes(row.size)),
  );
  const bar = sending && !isDone && !row.fault && row.size > 0 && row.sent > 0;
  return el(
    "li",
    row.fault ? { class: "has-fault" } : {},
    head,
    bar && el("progress", { max: String(row.size), value: String(row.sent), "aria-label": `${row.path}: sent` }),
    row.fault && el("p", { class: "fault m-0" }, `⚠ ${row.fault}`),
  );
}
