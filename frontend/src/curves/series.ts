// Curves as charts want them: smoothed, cut to what a logarithm can show, several runs over one axis. Pure.

export type Point = [step: number, time: number, value: number | null];

export interface Curve {
  run: string;
  tag: string;
  points: Point[];
  /** By step: what a point without a value is. */
  not_finite?: Record<string, string>;
}

const NOT_FINITE: Record<string, string> = { nan: "NaN", inf: "∞", "-inf": "−∞" };

/** What a value is that is no finite number, in a word. */
export function oddWord(kind: string | undefined): string {
  return NOT_FINITE[kind ?? ""] ?? "not finite";
}

/** `NaN at step 12 and 3 more`: the values of a curve that are not finite; empty where all are. */
export function oddWords(curve: Curve): string {
  const odd = curve.points.filter((point) => point[2] === null);
  const [first] = odd;
  if (!first) return "";
  const more = odd.length > 1 ? ` and ${(odd.length - 1).toLocaleString("en")} more` : "";
  return `${oddWord(curve.not_finite?.[String(first[0])])} at step ${first[0].toLocaleString("en")}${more}`;
}

type Value = number | null | undefined;

/** The places of values without a neighbour that a line could lead to: they are drawn as dots. Undefined has no say: it
 *  stands where only other curves have a step. */
export function alone(values: readonly Value[]): number[] {
  const known = values.map((value, at) => ({ value, at })).filter((one) => one.value !== undefined);
  const isNumber = (one: { value: Value } | undefined) => typeof one?.value === "number";
  return known.filter((one, i) => isNumber(one) && !isNumber(known[i - 1]) && !isNumber(known[i + 1])).map((one) => one.at);
}

/** The ends of an axis, with some space beyond the smallest and the largest value. Values that are all above zero, or all
 *  below, do not make it cross zero. */
export function padded(least: number | null, most: number | null, share: number): [number, number] {
  if (least === null || most === null || !Number.isFinite(least) || !Number.isFinite(most)) return [0, 1];
  const pad = most > least ? (most - least) * share : Math.abs(most) * 0.1 || 1;
  const [low, high] = [least - pad, most + pad];
  return [least >= 0 && low < 0 && least > pad / 2 ? 0 : low, most <= 0 && high > 0 && -most > pad / 2 ? 0 : high];
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
