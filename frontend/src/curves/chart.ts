// One chart: the curves of one tag, a line for each run.
import uPlot from "uplot";
import { el } from "../dom";
import { aligned, positive, short, smoothed, type Curve } from "./series";

export interface Looks {
  /** 0: as it is; towards 1: smoother. */
  smoothing: number;
  logarithmic: boolean;
  byTime: boolean;
}

export const COLORS = ["#4299e1", "#f76707", "#2fb344", "#ae3ec9", "#d63939", "#17a2b8", "#f59f00", "#667382"];
const HEIGHT = 190;

export class Chart {
  readonly element: HTMLElement;
  private readonly place: HTMLElement;
  private readonly latest: HTMLElement;
  private plot: uPlot | null = null;
  private shape = "";

  constructor(readonly tag: string) {
    this.latest = el("span", { class: "curve-latest" });
    this.place = el("div", { class: "curve-plot", role: "img" });
    this.element = el("figure", { class: "curve" }, el("figcaption", {}, el("bdi", { class: "curve-tag" }, tag), this.latest), this.place);
    new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT })).observe(this.place);
  }

  show(curves: Curve[], looks: Looks): void {
    const drawn = curves.map((curve) => {
      const first = curve.points[0]?.[1] ?? 0;
      const values = curve.points.map((point) => point[2]);
      return {
        name: curve.run,
        steps: curve.points.map(([step, time]) => (looks.byTime ? Math.round((time - first) * 10) / 10 : step)),
        values: looks.logarithmic ? positive(smoothed(values, looks.smoothing)) : smoothed(values, looks.smoothing),
      };
    });
    const { steps, values } = aligned(drawn);
    const lasts = curves.map((curve) => curve.points[curve.points.length - 1]);
    const words = lasts.map((point) => (point ? `${short(point[2])} at step ${point[0].toLocaleString()}` : ""));
    this.latest.textContent = words[0] ?? "";
    this.place.setAttribute("aria-label", `${this.tag}: ${curves.map((curve, i) => `${curve.run} ${words[i]}`).join("; ")}`);
    const data = [steps, ...values] as uPlot.AlignedData;
    const isDark = document.documentElement.dataset.bsTheme === "dark";
    const shape = JSON.stringify([drawn.map((one) => one.name), looks.logarithmic, looks.byTime, isDark]);
    if (this.plot && shape === this.shape) {
      this.plot.setData(data);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(drawn.map((one) => one.name), looks, isDark), data, this.place);
  }

  private options(names: string[], looks: Looks, isDark: boolean): uPlot.Options {
    const ink = isDark ? "#9ba9be" : "#5c6672";
    const line = isDark ? "rgba(155,169,190,.16)" : "rgba(92,102,114,.16)";
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui" };
    return {
      width: Math.max(120, this.place.clientWidth),
      height: HEIGHT,
      scales: { x: { time: false }, y: looks.logarithmic ? { distr: 3 } : {} },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((tick) => (looks.byTime ? `${short(tick)} s` : compact(tick))), size: 26 },
        { ...axis, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))), size: 54 },
      ],
      cursor: { sync: { key: "curves" }, points: { size: 6 } },
      legend: { show: true, live: true },
      series: [
        { label: looks.byTime ? "second" : "step", value: (_, value) => (value === null ? "–" : value.toLocaleString()) },
        ...names.map((name, i) => ({
          label: name || this.tag,
          stroke: COLORS[i % COLORS.length] ?? "#4299e1",
          width: 1.6,
          spanGaps: true,
          points: { show: false },
          value: (_: uPlot, value: number | null) => short(value),
        })),
      ],
    };
  }
}

function compact(tick: number): string {
  return Math.abs(tick) >= 10_000 ? new Intl.NumberFormat("en", { notation: "compact" }).format(tick) : String(tick);
}
