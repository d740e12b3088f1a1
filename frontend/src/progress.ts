import type { Progress } from "./api";
import { el } from "./dom";

/** A bar where the end is known, else the step in words; null where nothing was reported. */
export function progressOf(progress: Progress | null): HTMLElement | null {
  if (!progress || progress.step === undefined) return null;
  const { step, total, epoch } = progress;
  const words = [`step ${step.toLocaleString()}`];
  if (total) words[0] += ` of ${total.toLocaleString()}`;
  if (epoch !== undefined) words.push(`epoch ${epoch}`);
  const label = el("span", { class: "text-secondary small" }, words.join(" · "));
  if (!total) return label;
  const bar = el("progress", { max: String(total), value: String(Math.min(step, total)), "aria-label": words[0] ?? "" });
  return el("div", { class: "job-progress" }, bar, label);
}
