// The card with a job's curves: a chart for each tag, each with a line for each run, live while the job runs.
import { get, Refusal } from "../api";
import { el } from "../dom";
import { Chart, dot, type Looks } from "./chart";
import { byTag, colorOf, runWords, type Curve } from "./series";

interface Answer {
  attempts: number;
  results: Curve[];
}

const POINTS = 600;
const EVERY = 5_000;
const MOST_CHARTS = 12;

export interface CurvesCard {
  /** The job has changed: there may be new points. */
  changed: () => void;
}

export function startCurves(root: HTMLElement, isOver: () => boolean): CurvesCard {
  const card = new Card(root, isOver);
  card.changed();
  document.addEventListener("visibilitychange", () => card.changed());
  return card;
}

class Card implements CurvesCard {
  private readonly place: HTMLElement;
  private readonly tools: HTMLElement;
  private readonly empty: HTMLElement;
  private readonly runs = el("span", { class: "curve-runs", role: "group", "aria-label": "Runs" });
  private readonly attempts = el("select", { class: "form-select form-select-sm curve-attempts", "aria-label": "Attempt" }) as HTMLSelectElement;
  private readonly more = el("button", { type: "button", class: "btn curve-more" });
  private readonly charts = new Map<string, Chart>();
  private readonly looks: Looks = { smoothing: 0, logarithmic: false, byTime: false };
  private readonly colors = new Map<string, string>();
  private readonly hidden = new Set<string>();
  private curves: Curve[] = [];
  private most = MOST_CHARTS;
  private timer = 0;
  private last = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly isOver: () => boolean,
  ) {
    const find = (name: string) => {
      const found = root.querySelector<HTMLElement>(`[data-${name}]`);
      if (!found) throw new Error(`The card of curves has no ${name}.`);
      return found;
    };
    [this.place, this.tools, this.empty] = [find("charts"), find("tools"), find("empty")];
    this.more.addEventListener("click", () => {
      this.most = Infinity;
      this.draw();
    });
    this.attempts.hidden = true;
    this.attempts.addEventListener("change", () => this.another());
    const smoothing = el("input", { type: "range", min: "0", max: "0.98", step: "0.02", value: "0", id: "curve-smoothing" }) as HTMLInputElement;
    smoothing.addEventListener("input", () => {
      this.looks.smoothing = Number(smoothing.value);
      this.draw();
    });
    this.tools.append(
      this.attempts,
      this.runs,
      el("label", { for: "curve-smoothing" }, "Smoothing"),
      smoothing,
      this.toggle("Log scale", (on) => (this.looks.logarithmic = on)),
      this.toggle("By time", (on) => (this.looks.byTime = on)),
    );
  }

  changed(): void {
    if (document.hidden || this.timer) return;
    this.timer = window.setTimeout(() => void this.read(), Math.max(0, this.last + EVERY - Date.now()));
  }

  private async read(): Promise<void> {
    this.last = Date.now();
    try {
      const asked = this.attempts.value;
      const which = asked === "" ? "" : `&attempt=${asked}`;
      const answer = await get<Answer>(`jobs/${this.root.dataset.curves}/scalars/?points=${POINTS}${which}`);
      if (asked !== this.attempts.value) return void this.another(); // chosen meanwhile
      this.curves = answer.results;
      this.offerAttempts(answer.attempts);
      this.draw();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (!this.curves.length) this.empty.textContent = `${error.message} ${error.remedy}`;
    } finally {
      this.timer = 0;
    }
    if (!this.isOver()) window.setTimeout(() => this.changed(), 2 * EVERY);
  }

  /** Each attempt has its own curves; without a choice they are those of the current one. */
  private offerAttempts(count: number): void {
    this.attempts.hidden = count < 2;
    if (count < 2 || this.attempts.options.length === count) return;
    const chosen = this.attempts.value;
    const older = Array.from({ length: count - 1 }, (_, i) => String(count - 1 - i));
    this.attempts.replaceChildren(
      el("option", { value: "" }, `attempt ${count} (current)`),
      ...older.map((number) => el("option", { value: number }, `attempt ${number}`)),
    );
    this.attempts.value = chosen;
  }

  /** Show another attempt: nothing of the last one may stay. */
  private another(): void {
    for (const chart of this.charts.values()) chart.element.remove();
    this.charts.clear();
    this.curves = [];
    this.last = 0;
    this.changed();
  }

  private draw(): void {
    const tags = [...byTag(this.curves)];
    this.empty.hidden = tags.length > 0;
    this.tools.hidden = tags.length === 0 && this.attempts.hidden;
    this.empty.textContent = this.isOver() || this.attempts.value !== ""
      ? "No scalars: the script wrote none with tf.summary to its log directory."
      : "No scalars yet. Scalars that the script writes with tf.summary to its log directory appear here.";
    this.showRuns();
    for (const [tag, own] of tags.slice(0, this.most)) {
      let chart = this.charts.get(tag);
      if (!chart) {
        this.charts.set(tag, (chart = new Chart(tag)));
        this.place.append(chart.element);
      }
      chart.show(own.filter((curve) => !this.hidden.has(curve.run)), this.looks, this.colors);
    }
    if (tags.length <= this.most) {
      this.more.remove();
      return;
    }
    this.more.textContent = `Show ${tags.length - this.most} more`;
    this.place.append(this.more);
  }

  private showRuns(): void {
    const names = [...new Set(this.curves.map((curve) => curve.run))].sort();
    for (const name of names) if (!this.colors.has(name)) this.colors.set(name, colorOf(this.colors.size));
    if (names.length < 2 || this.runs.childElementCount === names.length) return;
    this.runs.replaceChildren(
      ...names.map((name) => {
        const button = this.toggle(runWords(name), (on) => (on ? this.hidden.delete(name) : this.hidden.add(name)), !this.hidden.has(name));
        button.prepend(dot(this.colors.get(name)));
        return button;
      }),
    );
  }

  private toggle(label: string, act: (on: boolean) => void, initially = false): HTMLElement {
    const button = el("button", { type: "button", class: "btn btn-sm", "aria-pressed": String(initially) }, label);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      act(on);
      this.draw();
    });
    return button;
  }
}
