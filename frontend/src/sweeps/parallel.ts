// Parallel coordinates: an axis for each parameter and one for the metric, a line for each trial. An axis is narrowed by
// dragging along it, or with the two sliders below it, which work by keyboard.
import { el } from "../dom";
import { goodness, metricAxis, placeOf, ticks, wordsAt, type Axis, type Plots, type Trial } from "./scale";
import { clipped, shade, svg } from "./svg";

const HEIGHT = 300;
const TOP = 34;
const BOTTOM = 16;
const LEAST_GAP = 110;
const SIDE = 64;
const STEPS = 100;
const LONG = 16;

interface Narrowed {
  low: number;
  high: number;
}

export class Parallel {
  readonly element: HTMLElement;
  /** Which trials are within the narrowed axes. */
  onChange: (shown: Trial[], all: number) => void = () => undefined;
  private readonly place = el("div", { class: "parallel-scroll", tabindex: "0", role: "img" });
  private readonly filters = el("div", { class: "parallel-filters" });
  private readonly narrowed = new Map<string, Narrowed>();
  private plots: Plots | null = null;
  private axes: Axis[] = [];
  private shape = "";

  constructor() {
    const clear = el("button", { type: "button", class: "btn btn-sm" }, "Show all");
    clear.addEventListener("click", () => {
      this.narrowed.clear();
      this.shape = "";
      this.draw();
    });
    const summary = el("summary", {}, "Filter by parameter");
    this.element = el("div", {}, this.place, el("details", { class: "parallel-filter" }, summary, this.filters, clear));
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  show(plots: Plots): void {
    this.plots = plots;
    this.axes = [...plots.axes, metricAxis(plots)];
    this.draw();
  }

  private draw(): void {
    const plots = this.plots;
    if (!plots || !plots.trials.length) return;
    this.drawFilters();
    const shown = plots.trials.filter((trial) => this.isWithin(trial));
    const width = Math.max(this.place.clientWidth, 2 * SIDE + LEAST_GAP * (this.axes.length - 1));
    const gap = (width - 2 * SIDE) / Math.max(1, this.axes.length - 1);
    const picture = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, class: "parallel", "aria-hidden": "true" });
    const metric = this.axes[this.axes.length - 1] as Axis;
    const lines = svg("g", { fill: "none" });
    const within = new Set(shown);
    // The best last, so that it lies above the others.
    for (const trial of [...plots.trials].reverse()) lines.append(this.line(plots, trial, metric, gap, within.has(trial), trial === shown[0]));
    picture.append(lines, ...this.axes.map((axis, number) => this.axis(axis, SIDE + number * gap)));
    this.place.replaceChildren(picture);
    this.place.setAttribute("aria-label", this.words(plots, shown));
    this.onChange(shown, plots.trials.length);
  }

  private words(plots: Plots, shown: Trial[]): string {
    const names = plots.axes.map((axis) => axis.name).join(", ");
    const best = shown[0] ? ` The best of them is trial ${shown[0].n} with ${plots.metric.tag} ${shown[0].best}.` : "";
    return `Parallel coordinates of ${names} and ${plots.metric.tag}: ${shown.length} of ${plots.trials.length} trials.${best} The table below has their values.`;
  }

  private valueOf(trial: Trial, number: number): number | null {
    const axis = this.axes[number] as Axis;
    return placeOf(axis, number === this.axes.length - 1 ? trial.best : (trial.values[number] ?? null));
  }

  private isWithin(trial: Trial): boolean {
    return this.axes.every((axis, number) => {
      const asked = this.narrowed.get(axis.name);
      const place = this.valueOf(trial, number);
      return !asked || (place !== null && place >= asked.low - 1e-9 && place <= asked.high + 1e-9);
    });
  }

  private line(plots: Plots, trial: Trial, metric: Axis, gap: number, isWithin: boolean, isBest: boolean): SVGElement {
    const points = this.axes.flatMap((_, number) => {
      const place = this.valueOf(trial, number);
      return place === null ? [] : [`${(SIDE + number * gap).toFixed(1)},${yOf(place).toFixed(1)}`];
    });
    const looks: Record<string, string | number> = isWithin
      ? { stroke: shade(goodness(plots, metric, trial.best)), "stroke-width": isBest ? 3.5 : 1.6, "stroke-opacity": isBest ? 1 : 0.75 }
      : { class: "parallel-out", "stroke-width": 1 };
    const line = svg("polyline", { points: points.join(" "), "stroke-linejoin": "round", ...looks });
    const said = this.axes.slice(0, -1).map((axis, number) => `${axis.name} ${String(trial.values[number])}`).join(", ");
    line.append(svg("title", {}, `Trial ${trial.n}: ${said}; ${plots.metric.tag} ${trial.best}`));
    if (trial.url && isWithin) {
      line.classList.add("parallel-link");
      line.addEventListener("click", () => window.location.assign(trial.url));
    }
    return line;
  }

  private axis(axis: Axis, x: number): SVGElement {
    const group = svg("g", { class: "parallel-axis" });
    group.append(svg("text", { x, y: 16, "text-anchor": "middle", class: "parallel-name" }, svg("title", {}, axis.name), clipped(axis.name, LONG)));
    group.append(svg("line", { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
    for (const place of ticks(axis)) {
      const y = yOf(place);
      group.append(svg("line", { x1: x - 4, x2: x + 4, y1: y, y2: y }), svg("text", { x: x + 7, y: y + 4, class: "parallel-tick" }, clipped(wordsAt(axis, place), 12)));
    }
    const asked = this.narrowed.get(axis.name);
    if (asked) group.append(svg("rect", { x: x - 6, width: 12, y: yOf(asked.high), height: Math.max(3, yOf(asked.low) - yOf(asked.high)), class: "parallel-brush" }));
    const handle = svg("rect", { x: x - 14, width: 28, y: TOP, height: HEIGHT - TOP - BOTTOM, class: "parallel-handle" });
    handle.addEventListener("pointerdown", (event) => this.drag(axis, handle, event as PointerEvent));
    group.append(handle);
    return group;
  }

  /** Narrow the axis to what is dragged over; a click alone shows all of it again. */
  private drag(axis: Axis, handle: SVGElement, begun: PointerEvent): void {
    begun.preventDefault();
    const box = (handle.ownerSVGElement as SVGElement).getBoundingClientRect();
    const placeAt = (event: PointerEvent) => Math.min(1, Math.max(0, 1 - (event.clientY - box.top - TOP) / (HEIGHT - TOP - BOTTOM)));
    const first = placeAt(begun);
    const move = (event: PointerEvent) => {
      const here = placeAt(event);
      if (Math.abs(here - first) < 0.02) return;
      this.narrowed.set(axis.name, { low: Math.min(first, here), high: Math.max(first, here) });
      this.shape = "";
      this.draw();
    };
    const end = (event: PointerEvent) => {
      document.removeEventListener("pointermove", move);
      document.removeEventListener("pointerup", end);
      if (Math.abs(placeAt(event) - first) >= 0.02) return;
      this.narrowed.delete(axis.name);
      this.shape = "";
      this.draw();
    };
    document.addEventListener("pointermove", move);
    document.addEventListener("pointerup", end);
  }

  /** Two sliders for each axis. They stay as they are while one is moved: the focus must not be lost. */
  private drawFilters(): void {
    const shape = JSON.stringify(this.axes);
    if (shape === this.shape) return;
    this.shape = shape;
    this.filters.replaceChildren(...this.axes.map((axis) => this.filter(axis)));
  }

  private filter(axis: Axis): HTMLElement {
    const said = el("span", { class: "text-secondary small" });
    const make = (end: "low" | "high") => {
      const asked = this.narrowed.get(axis.name) ?? { low: 0, high: 1 };
      const word = end === "low" ? "from" : "to";
      const slider = el("input", { type: "range", min: "0", max: String(STEPS), value: String(Math.round(asked[end] * STEPS)), "aria-label": `${axis.name} ${word}` }) as HTMLInputElement;
      slider.addEventListener("input", () => change());
      return slider;
    };
    const [low, high] = [make("low"), make("high")];
    const say = () => {
      const ends = [Number(low.value), Number(high.value)].sort((a, b) => a - b).map((one) => one / STEPS);
      low.setAttribute("aria-valuetext", wordsAt(axis, Number(low.value) / STEPS));
      high.setAttribute("aria-valuetext", wordsAt(axis, Number(high.value) / STEPS));
      said.textContent = `${wordsAt(axis, ends[0] ?? 0)} to ${wordsAt(axis, ends[1] ?? 1)}`;
      return { low: ends[0] ?? 0, high: ends[1] ?? 1 };
    };
    const change = () => {
      const ends = say();
      if (ends.low <= 0 && ends.high >= 1) this.narrowed.delete(axis.name);
      else this.narrowed.set(axis.name, ends);
      this.draw();
    };
    say();
    return el("fieldset", {}, el("legend", {}, axis.name), low, high, said);
  }
}

function yOf(place: number): number {
  return HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM);
}
