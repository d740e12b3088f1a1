// One chart: the curves of one tag, a line for each run. What the pointer is at, and else the latest, stands above it.
import uPlot from "uplot";
import { el } from "../dom";
import { aligned, alone, oddWord, oddWords, padded, positive, runWords, short, smoothed, type Curve } from "./series";

export interface Looks {
  /** 0: as it is; towards 1: smoother. */
  smoothing: number;
  logarithmic: boolean;
  byTime: boolean;
}

/** Each run has one colour in every chart. */
export type Colors = ReadonlyMap<string, string>;

const HEIGHT = 180;
const SPACE = { x: 0.02, y: 0.08 };

/** A value that is no finite number: where it is along the axis, and what it is. */
interface Odd {
  at: number;
  kind: string;
}

export class Chart {
  readonly element: HTMLElement;
  private readonly place: HTMLElement;
  private readonly reading: HTMLElement;
  private readonly oddNote: HTMLElement;
  private odd: Odd[][] = [];
  private plot: uPlot | null = null;
  private shape = "";
  private runs: string[] = [];
  private colors: Colors = new Map();
  private byTime = false;

  constructor(readonly tag: string) {
    this.reading = el("span", { class: "curve-reading" });
    this.place = el("div", { class: "curve-plot", role: "img" });
    this.oddNote = el("span", { class: "curve-odd" });
    const caption = el("figcaption", {}, el("bdi", { class: "curve-tag" }, tag), this.reading, this.oddNote);
    this.element = el("figure", { class: "curve" }, caption, this.place);
    new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT })).observe(this.place);
  }

  show(curves: Curve[], looks: Looks, colors: Colors): void {
    const placeOf = (curve: Curve, [step, time]: Curve["points"][number]) =>
      looks.byTime ? Math.round((time - (curve.points[0]?.[1] ?? 0)) * 10) / 10 : step;
    this.odd = curves.map((curve) =>
      curve.points
        .filter((point) => point[2] === null)
        .map((point) => ({ at: placeOf(curve, point), kind: curve.not_finite?.[String(point[0])] ?? "" })),
    );
    const drawn = curves.map((curve) => {
      const values = curve.points.map((point) => point[2]);
      return {
        steps: curve.points.map((point) => placeOf(curve, point)),
        values: looks.logarithmic ? positive(smoothed(values, looks.smoothing)) : smoothed(values, looks.smoothing),
      };
    });
    this.runs = curves.map((curve) => curve.run);
    this.colors = colors;
    this.byTime = looks.byTime;
    const { steps, values } = aligned(drawn);
    const data = [steps, ...values] as uPlot.AlignedData;
    const isDark = document.documentElement.dataset.bsTheme === "dark";
    const shape = JSON.stringify([this.runs, looks.logarithmic, looks.byTime, isDark]);
    if (this.plot && shape === this.shape) this.plot.setData(data);
    else {
      this.shape = shape;
      this.plot?.destroy();
      this.plot = new uPlot(this.options(looks, isDark), data, this.place);
    }
    this.read(null);
    const odd = curves.map((curve) => ({ run: curve.run, words: oddWords(curve) })).filter((one) => one.words);
    this.oddNote.textContent = odd.map(({ run, words }) => (curves.length > 1 ? `${runWords(run)}: ${words}` : words)).join("; ");
    this.oddNote.hidden = odd.length === 0;
    this.place.setAttribute("aria-label", `${this.tag}. ${this.reading.textContent} ${this.oddNote.textContent}`.trim());
  }

  /** Say the values at a place of the data; null: the latest of each run. */
  private read(at: number | null): void {
    const [steps, ...values] = (this.plot?.data ?? [[]]) as [number[], ...(number | null | undefined)[][]];
    const words = this.runs.map((run, i) => {
      const known = values[i] ?? [];
      let place = at ?? known.length - 1;
      while (place > 0 && (known[place] === undefined || (known[place] === null && !this.oddAt(i, steps[place])))) place -= 1;
      const odd = known[place] === null ? this.oddAt(i, steps[place]) : undefined;
      const words = odd ? oddWord(odd.kind) : short(known[place]);
      const value = el("span", { class: "curve-value" }, dot(this.colors.get(run)), this.runs.length > 1 ? `${runWords(run)} ` : "", words);
      return value;
    });
    const step = steps[at ?? steps.length - 1];
    const where = step === undefined ? "" : this.byTime ? `${short(step)} s` : `step ${step.toLocaleString()}`;
    this.reading.replaceChildren(...words, el("span", { class: "curve-step" }, where));
  }

  private oddAt(run: number, at: number | undefined): Odd | undefined {
    return this.odd[run]?.find((one) => one.at === at);
  }

  /** Values that are not finite stand at the edge: infinity at the top, what is not a number and minus infinity below. */
  private drawOdd(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const size = 5 * devicePixelRatio;
    ctx.save();
    this.odd.forEach((all, run) => {
      ctx.fillStyle = this.colors.get(this.runs[run] ?? "") ?? "#4299e1";
      for (const { at, kind } of all) {
        const x = plot.valToPos(at, "x", true);
        const isUp = kind === "inf";
        const y = isUp ? bbox.top : bbox.top + bbox.height;
        ctx.beginPath();
        const base = isUp ? y + size * 1.6 : y - size * 1.6;
        ctx.moveTo(x - size, base);
        ctx.lineTo(x + size, base);
        ctx.lineTo(x, y);
        ctx.closePath();
        ctx.fill();
      }
    });
    ctx.restore();
  }

  private options(looks: Looks, isDark: boolean): uPlot.Options {
    const ink = isDark ? "#a3a9b5" : "#5f6672";
    const line = isDark ? "rgba(163,169,181,.16)" : "rgba(95,102,114,.16)";
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    return {
      width: Math.max(120, this.place.clientWidth),
      height: HEIGHT,
      padding: [8, 12, 0, 0],
      scales: {
        x: { time: false, range: (_, least, most) => padded(least, most, SPACE.x) },
        y: looks.logarithmic ? { distr: 3 } : { range: (_, least, most) => padded(least, most, SPACE.y) },
      },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((tick) => (looks.byTime ? `${short(tick)} s` : compact(tick))), size: 26 },
        { ...axis, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))), size: 58 },
      ],
      cursor: { sync: { key: "curves" }, points: { size: 6 } },
      legend: { show: false },
      hooks: { setCursor: [(plot) => this.read(plot.cursor.idx ?? null)], draw: [(plot) => this.drawOdd(plot)] },
      series: [
        {},
        ...this.runs.map((run) => ({
          stroke: this.colors.get(run) ?? "#4299e1",
          width: 1.6,
          spanGaps: false, // a line ends where the values are not finite
          points: { show: false, size: 6, fill: this.colors.get(run) ?? "#4299e1", filter: (plot: uPlot, series: number) => alone((plot.data[series] ?? []) as (number | null | undefined)[]) },
        })),
      ],
    };
  }
}

/** A spot of a run's colour. */
export function dot(color = "#4299e1"): SVGElement {
  const spot = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  spot.setAttribute("viewBox", "0 0 8 8");
  spot.setAttribute("class", "curve-dot");
  spot.setAttribute("aria-hidden", "true");
  const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  for (const [name, value] of [["cx", "4"], ["cy", "4"], ["r", "4"], ["fill", color]] as const) circle.setAttribute(name, value);
  spot.append(circle);
  return spot;
}

function compact(tick: number): string {
  return Math.abs(tick) >= 10_000 ? new Intl.NumberFormat("en", { notation: "compact" }).format(tick) : String(tick);
}
