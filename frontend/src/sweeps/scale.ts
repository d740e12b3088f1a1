// Axes of a sweep's plots: where a value lies on one, from 0 to 1, and what a place on it is called. Pure.
import { short } from "../curves/series";

export type Value = string | number | boolean | null;

export interface Axis {
  name: string;
  /** Of values that are no numbers, in their order. */
  choices?: string[];
  low?: number;
  high?: number;
  log?: boolean;
}

export interface Trial {
  n: number;
  values: Value[];
  best: number;
  state: string;
  url: string;
}

export interface Plots {
  axes: Axis[];
  metric: { tag: string; goal: "minimize" | "maximize" };
  /** The best first. */
  trials: Trial[];
  curves: { n: number; points: [number, number | null][] }[];
}

/** Where the value lies on the axis; null where it has no place there. */
export function placeOf(axis: Axis, value: Value): number | null {
  if (axis.choices) {
    const at = axis.choices.indexOf(String(value));
    return at < 0 ? null : axis.choices.length === 1 ? 0.5 : at / (axis.choices.length - 1);
  }
  if (typeof value !== "number") return null;
  const [low, high] = ends(axis);
  if (high === low) return 0.5;
  return (bent(axis, value) - low) / (high - low);
}

/** What stands at a place of the axis, from 0 to 1. */
export function wordsAt(axis: Axis, place: number): string {
  if (axis.choices) return axis.choices[Math.round(place * (axis.choices.length - 1))] ?? "";
  const [low, high] = ends(axis);
  const value = low + place * (high - low);
  return short(axis.log ? Math.exp(value) : value);
}

/** The places of the words beside an axis: of each choice, if they are few, or of five numbers. */
export function ticks(axis: Axis): number[] {
  const count = axis.choices ? axis.choices.length : axis.low === axis.high ? 1 : 5;
  if (count === 1) return [0.5];
  const step = axis.choices ? Math.max(1, Math.ceil(count / 12)) : 1;
  return Array.from({ length: count }, (_, at) => at).filter((at) => at % step === 0).map((at) => at / (count - 1));
}

/** The axis of the metric over these trials: on a log scale where its values differ by orders. */
export function metricAxis(plots: Plots): Axis {
  const values = plots.trials.map((trial) => trial.best);
  const low = Math.min(...values);
  const high = Math.max(...values);
  return { name: plots.metric.tag, low, high, log: low > 0 && high / low >= 100 };
}

/** How good a value is among these, from 0 to 1 (the best). */
export function goodness(plots: Plots, axis: Axis, value: number): number {
  const place = placeOf(axis, value) ?? 0.5;
  return plots.metric.goal === "minimize" ? 1 - place : place;
}

function bent(axis: Axis, value: number): number {
  return axis.log ? Math.log(value) : value;
}

function ends(axis: Axis): [number, number] {
  return [bent(axis, axis.low ?? 0), bent(axis, axis.high ?? 1)];
}
