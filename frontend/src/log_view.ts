// The list of log lines: bounded, and at its end unless the reader has scrolled away.
import { el } from "./dom";
import type { LogLine } from "./log_lines";

const MOST = 5_000;
const TOGETHER = 100;
const ESCAPES = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]/g;

export class LogView {
  private pending: LogLine[] = [];
  private timer = 0;
  private only = "";

  constructor(
    private readonly box: HTMLElement,
    private readonly toEnd: HTMLButtonElement,
    private readonly stream: HTMLSelectElement,
  ) {
    box.addEventListener("scroll", () => (this.toEnd.hidden = this.atEnd()));
    toEnd.addEventListener("click", () => this.scrollToEnd());
    stream.addEventListener("change", () => this.filter(stream.value));
  }

  add(lines: LogLine[]): void {
    this.pending.push(...lines);
    this.timer ||= window.setTimeout(() => this.flush(), TOGETHER);
  }

  /** Show what came in, ordered by time: streams arrive one after the other, their lines belong side by side. */
  private flush(): void {
    this.timer = 0;
    const follow = this.atEnd();
    const lines = this.pending.sort((a, b) => a.time - b.time).slice(-MOST);
    this.pending = [];
    const fresh = document.createDocumentFragment();
    for (const line of lines) fresh.append(this.row(line));
    this.box.append(fresh);
    while (this.box.childElementCount > MOST) this.box.firstElementChild?.remove();
    if (follow) this.scrollToEnd();
  }

  private row(line: LogLine): HTMLElement {
    const stream = `${line.role}-${line.index}`;
    if (![...this.stream.options].some((option) => option.value === stream)) {
      this.stream.add(new Option(`${line.role} ${line.index}`, stream));
    }
    const when = line.time ? new Date(line.time).toLocaleTimeString() : "";
    const row = el(
      "div",
      { class: line.gap ? "log-line log-gap" : "log-line", "data-stream": stream },
      el("span", { class: "log-time" }, when),
      el("span", { class: `log-task log-${line.role}` }, `${line.role} ${line.index}`),
      el("span", { class: "log-text" }, line.text.replace(ESCAPES, "")),
    );
    row.hidden = this.only !== "" && stream !== this.only;
    return row;
  }

  private filter(stream: string): void {
    this.only = stream;
    for (const row of this.box.children) {
      (row as HTMLElement).hidden = stream !== "" && (row as HTMLElement).dataset.stream !== stream;
    }
    this.scrollToEnd();
  }

  private atEnd(): boolean {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
  }

  private scrollToEnd(): void {
    this.box.scrollTop = this.box.scrollHeight;
    this.toEnd.hidden = true;
  }
}
