// Curves as charts want them: smoothed, cut to what a logarithm can show, several runs over one axis. Pure.

export type Point = [step: number, time: number, value: number | null];

export interface Curve {
  run: string;
  tag: string;
  points: Point[];
}

const COLORS = ["#3b82f6", "#f76707", "#2fb344", "#ae3ec9", "#d63939", "#17a2b8", "#c98a00", "#7b8794"];

/** The colour of the nth line of a chart. */
export function colorOf(number: number): string {
  return COLORS[number % COLORS.length] as string;
}

/** A run is a folder of event files below the log directory; the directory itself has no name of its own. */
export function runWords(run: string): string {
  return run === "" || run === "." ? "main" : run;
}

/** Exponential smoothing, begun without a bias towards zero. Weight 0 leaves values as they are. */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let last = 0;
  let share = 0;
  return values.map((value) => {
    if (value === null) return null;
    last = last * weight + value * (1 - weight);
    share = share * weight + (1 - weight);
    return last / share;
  });
}

/** A logarithm shows what is above zero. */
export function positive(values: readonly (number | null)[]): (number | null)[] {
  return values.map((value) => (value !== null && value > 0 ? value : null));
}

export interface Table {
  /** The steps of all curves, ascending. */
  steps: number[];
  /** Each curve's value at each step; undefined where it has none. */
  values: (number | null | undefined)[][];
}

/** Several curves over the steps of all of them. */
export function aligned(curves: readonly { steps: number[]; values: (number | null)[] }[]): Table {
  const steps = [...new Set(curves.flatMap((curve) => curve.steps))].sort((a, b) => a - b);
  const values = curves.map((curve) => {
    const known = new Map(curve.steps.map((step, i) => [step, curve.values[i]]));
    return steps.map((step) => known.get(step));
  });
  return { steps, values };
}

/** Curves by tag, each tag's by run. */
export function byTag(curves: readonly Curve[]): Map<string, Curve[]> {
  const tags = new Map<string, Curve[]>();
  for (const curve of curves) tags.set(curve.tag, [...(tags.get(curve.tag) ?? []), curve]);
  return tags;
}

/** A number as an axis or a legend says it. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(4)));
}
