// How many errors and warnings a log has, the filter by them, and the way to the first error. The page brings the counts
// of a short log along; a long one is counted once the log is used, so that opening it costs nothing.
import { levelOf, type Level } from "./levels";
import type { Levels, LogPages } from "./pages";
import { nameOf, taskOf } from "./places";
import type { Row } from "./tape";
import { toast } from "../toast";

const ROUNDS = 120;

export interface LevelTools {
  /** New lines came, after so many that there were before. */
  arrived: (rows: Row[], before: number) => void;
  press: (level: "error" | "warning") => void;
  /** Show all lines again, without saying so to the listener where none were hidden. */
  release: () => void;
  firstError: () => Promise<void>;
}

interface Listener {
  filter: (level: Level | null) => void;
  toLine: (task: string, line: number) => void;
  trouble: (error: unknown) => void;
}

export function levelTools(root: HTMLElement, pages: LogPages, first: Levels, listener: Listener): LevelTools {
  let counts = first;
  let pressed: Level | null = null;
  let counting: Promise<void> | null = null;
  const buttons = [...root.querySelectorAll<HTMLButtonElement>("button[data-level]")];
  const isWhole = () => counts.lines >= counts.of;

  const show = () => {
    for (const kind of ["errors", "warnings"] as const) {
      const place = root.querySelector(`[data-count="${kind}"]`);
      if (place) place.textContent = `${counts[kind].toLocaleString()}${isWhole() ? "" : "+"}`;
      const words = place?.nextElementSibling as HTMLElement | null;
      if (words) words.textContent = (counts[kind] === 1 ? words.dataset.one : words.dataset.many) ?? "";
    }
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.level === pressed));
    root.classList.toggle("log-has-errors", counts.errors > 0);
  };
  const count = async () => {
    try {
      for (let round = 0; round < ROUNDS && !isWhole(); round += 1) {
        counts = await pages.levels();
        show();
      }
    } catch (error) {
      listener.trouble(error);
    }
  };
  const countOn = () => (counting ??= count().finally(() => (counting = null)));
  const set = (level: Level | null) => {
    if (pressed === level) return;
    pressed = level;
    show();
    listener.filter(level);
  };

  for (const button of buttons) {
    button.addEventListener("click", () => set(pressed === button.dataset.level ? null : (button.dataset.level as Level)));
  }
  const firstError = async () => {
    if (!isWhole()) await countOn();
    if (counts.first_error) listener.toLine(nameOf(counts.first_error), counts.first_error.n);
    else toast("No errors in this log.", "info");
  };
  root.querySelector("[data-first-error]")?.addEventListener("click", () => void firstError());
  if (!isWhole()) {
    const viewer = root.closest("[data-log]") ?? root;
    for (const event of ["pointermove", "keydown", "wheel", "touchstart"]) {
      viewer.addEventListener(event, () => void countOn(), { once: true, passive: true });
    }
  }
  show();

  return {
    arrived(rows, before) {
      let { errors, warnings, lines, of, first_error } = counts;
      const wasWhole = isWhole();
      let at = before;
      for (const row of rows) {
        const isNew = wasWhole && at >= lines; // the count may be ahead of what came in
        at += row.gap ?? 1;
        const level = row.gap || !isNew ? null : levelOf(row.text);
        if (level === "error") {
          errors += 1;
          first_error ??= { ...taskOf(row.task), n: row.line };
        } else if (level === "warning") warnings += 1;
      }
      of = Math.max(of, at);
      if (wasWhole) lines = Math.max(lines, at);
      counts = { errors, warnings, lines, of, first_error };
      show();
    },
    press: set,
    release: () => set(null),
    firstError,
  };
}
