// The metric over one parameter: a dot for each trial. Which parameter is chosen above it.
import { el } from "../dom";
import { goodness, metricAxis, placeOf, ticks, wordsAt, type Axis, type Plots } from "./scale";
import { clipped, shade, svg } from "./svg";

const HEIGHT = 240;
const SPACE = { left: 64, right: 20, top: 10, bottom: 34 };

export class Scatter {
  readonly element: HTMLElement;
  private readonly choice = el("select", { class: "form-select form-select-sm", id: "scatter-parameter" }) as HTMLSelectElement;
  private readonly place = el("div", { role: "img" });
  private plots: Plots | null = null;

  constructor() {
    const label = el("label", { class: "form-label", for: "scatter-parameter" }, "Parameter");
    this.element = el("div", {}, el("div", { class: "scatter-choice" }, label, this.choice), this.place);
    this.choice.addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  show(plots: Plots): void {
    this.plots = plots;
    if (this.choice.options.length !== plots.axes.length)
      this.choice.replaceChildren(...plots.axes.map((axis, number) => el("option", { value: String(number) }, axis.name)));
    this.draw();
  }

  private draw(): void {
    const plots = this.plots;
    const number = Number(this.choice.value || 0);
    const across = plots?.axes[number];
    if (!plots || !across || !plots.trials.length) return;
    const up = metricAxis(plots);
    const width = Math.max(240, this.place.clientWidth);
    const x = (place: number) => SPACE.left + place * (width - SPACE.left - SPACE.right);
    const y = (place: number) => HEIGHT - SPACE.bottom - place * (HEIGHT - SPACE.top - SPACE.bottom);
    const picture = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, class: "parallel", "aria-hidden": "true" });
    picture.append(...this.frame(across, up, x, y));
    for (const trial of [...plots.trials].reverse()) {
      const [at, high] = [placeOf(across, trial.values[number] ?? null), placeOf(up, trial.best)];
      if (at === null || high === null) continue;
      const title = svg("title", {}, `Trial ${trial.n}: ${across.name} ${String(trial.values[number])}, ${up.name} ${trial.best}`);
      picture.append(svg("circle", { cx: x(at), cy: y(high), r: trial === plots.trials[0] ? 7 : 5, fill: shade(goodness(plots, up, trial.best)), class: "scatter-dot" }, title));
    }
    this.place.replaceChildren(picture);
    this.place.setAttribute("aria-label", `${up.name} over ${across.name}, ${plots.trials.length} trials. The table below has their values.`);
  }

  private frame(across: Axis, up: Axis, x: (place: number) => number, y: (place: number) => number): SVGElement[] {
    const group = svg("g", { class: "parallel-axis" });
    group.append(svg("line", { x1: x(0), x2: x(1), y1: y(0) + 6, y2: y(0) + 6 }), svg("line", { x1: x(0) - 6, x2: x(0) - 6, y1: y(0), y2: y(1) }));
    const few = ticks(across).filter((_, at, all) => all.length <= 6 || at % Math.ceil(all.length / 6) === 0);
    for (const place of few) group.append(svg("text", { x: x(place), y: y(0) + 24, "text-anchor": "middle", class: "parallel-tick" }, clipped(wordsAt(across, place), 10)));
    for (const place of ticks(up)) group.append(svg("text", { x: x(0) - 12, y: y(place) + 4, "text-anchor": "end", class: "parallel-tick" }, wordsAt(up, place)));
    return [group];
  }
}
