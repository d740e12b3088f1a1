// The card with a job's curves: a chart for each tag, each with a line for each run, live while the job runs.
// The chart library is loaded only where there is something to draw.
import { get, Refusal } from "../api";
import { el } from "../dom";
import type { Chart } from "./chart";
import { byTag, type Curve } from "./series";

const POINTS = 600;
const EVERY = 5_000;
const MOST_CHARTS = 12;

export interface CurvesCard {
  /** The job has changed: there may be new points. */
  changed: () => void;
}

export function startCurves(card: HTMLElement, isRunning: () => boolean): CurvesCard {
  const place = card.querySelector<HTMLElement>("[data-charts]");
  const tools = card.querySelector<HTMLElement>("[data-tools]");
  const empty = card.querySelector<HTMLElement>("[data-empty]");
  if (!place || !tools || !empty) throw new Error("The card of curves is not whole.");
  const charts = new Map<string, Chart>();
  const looks = { smoothing: 0, logarithmic: false, byTime: false };
  const hiddenRuns = new Set<string>();
  let shownMost = MOST_CHARTS;
  let curves: Curve[] = [];
  let timer = 0;
  let last = 0;

  const draw = async () => {
    const tags = [...byTag(curves)];
    empty.hidden = tags.length > 0;
    tools.hidden = tags.length === 0;
    empty.textContent = isRunning()
      ? "No curves yet. What the script writes with tf.summary below its log folder appears here."
      : "No curves: the script wrote no scalars with tf.summary below its log folder.";
    if (!tags.length) return;
    const { Chart } = await import("./chart");
    for (const [tag, own] of tags.slice(0, shownMost)) {
      let chart = charts.get(tag);
      if (!chart) {
        charts.set(tag, (chart = new Chart(tag)));
        place.append(chart.element);
      }
      chart.show(own.filter((curve) => !hiddenRuns.has(curve.run)), looks);
    }
    showRuns();
    more.hidden = tags.length <= shownMost;
    more.textContent = `Show ${tags.length - shownMost} more`;
    place.append(more);
  };
  const read = async () => {
    timer = 0;
    last = Date.now();
    try {
      curves = (await get<{ results: Curve[] }>(`${card.dataset.curves?.replace("/api/v1/", "")}?points=${POINTS}`)).results;
      await draw();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (!curves.length) empty.textContent = `${error.message} ${error.remedy}`;
    }
  };
  const changed = () => {
    if (!document.hidden) timer ||= window.setTimeout(() => void read(), Math.max(0, last + EVERY - Date.now()));
  };

  const more = el("button", { type: "button", class: "btn curve-more" }) as HTMLButtonElement;
  more.addEventListener("click", () => {
    shownMost = Infinity;
    void draw();
  });

  const smoothing = el("input", { type: "range", min: "0", max: "0.98", step: "0.02", value: "0", id: "curve-smoothing" }) as HTMLInputElement;
  smoothing.addEventListener("input", () => {
    looks.smoothing = Number(smoothing.value);
    void draw();
  });
  const runs = el("span", { class: "curve-runs", role: "group", "aria-label": "Runs" });
  tools.append(
    runs,
    el("label", { for: "curve-smoothing" }, "Smoothing"),
    smoothing,
    pressed("Log scale", (on) => (looks.logarithmic = on)),
    pressed("By time", (on) => (looks.byTime = on)),
  );

  function pressed(label: string, act: (on: boolean) => void): HTMLElement {
    const button = el("button", { type: "button", class: "btn btn-sm", "aria-pressed": "false" }, label);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      act(on);
      void draw();
    });
    return button;
  }

  function showRuns(): void {
    const names = [...new Set(curves.map((curve) => curve.run))];
    if (names.length < 2 || runs.childElementCount === names.length) return;
    runs.replaceChildren(
      ...names.map((name) => {
        const button = el("button", { type: "button", class: "btn btn-sm", "aria-pressed": "true" }, name || "(no run)");
        button.addEventListener("click", () => {
          if (hiddenRuns.delete(name)) button.setAttribute("aria-pressed", "true");
          else {
            hiddenRuns.add(name);
            button.setAttribute("aria-pressed", "false");
          }
          void draw();
        });
        return button;
      }),
    );
  }

  document.addEventListener("visibilitychange", () => !document.hidden && isRunning() && changed());
  setInterval(() => isRunning() && changed(), 2 * EVERY);
  void read();
  return { changed };
}
