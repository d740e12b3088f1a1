// The lines that a reader has chosen: the bar that names them, their address, and their text to copy.
import { el } from "../dom";
import { toast } from "../toast";
import type { LogPages } from "./pages";
import { hashOf, type Lines } from "./permalink";

export interface WhichLog {
  job: string;
  attempt: number;
  task: string;
}

export interface ChosenListener {
  clear: () => void;
  trouble: (error: unknown) => void;
}

const MOST_COPIED = 10_000;

export class ChosenBar {
  readonly element = el("div", { class: "log-chosen-bar" });

  constructor(
    private readonly log: WhichLog,
    private readonly pagesOf: (task: string) => LogPages,
    private readonly listener: ChosenListener,
  ) {
    this.element.hidden = true;
  }

  show(lines: Lines | null): void {
    this.element.hidden = !lines;
    if (!lines) return;
    const count = lines.last - lines.first + 1;
    const words = `${lines.task}, line${count > 1 ? `s ${lines.first + 1} to ${lines.last + 1}` : ` ${lines.first + 1}`}`;
    this.element.replaceChildren(
      el("span", {}, words),
      button("Copy link", () => void copy(this.linkOf(lines), "Link copied.")),
      button(count > 1 ? `Copy ${count.toLocaleString()} lines` : "Copy line", () => void this.copyLines(lines)),
      button("Clear", this.listener.clear),
    );
  }

  private linkOf(lines: Lines): string {
    const { job, attempt, task } = this.log;
    return `${location.origin}/jobs/${job}/logs/?attempt=${attempt}${task ? `&task=${task}` : ""}${hashOf(lines)}`;
  }

  private async copyLines(lines: Lines): Promise<void> {
    try {
      const page = await this.pagesOf(lines.task).from(lines.first, Math.min(MOST_COPIED, lines.last - lines.first + 1));
      await copy(page.rows.map((row) => row.text).join("\n"), "Lines copied.");
    } catch (error) {
      this.listener.trouble(error);
    }
  }
}

function button(label: string, act: () => void): HTMLElement {
  const made = el("button", { type: "button", class: "btn btn-sm" }, label);
  made.addEventListener("click", act);
  return made;
}

async function copy(text: string, says: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(says, "success");
  } catch {
    toast("The browser blocked copying.", "warning");
  }
}
