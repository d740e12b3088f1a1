// The page of a sweep: its plots, drawn again when htmx has brought newer values.
import { Chart } from "../curves/chart";
import { colorOf } from "../curves/series";
import { byId } from "../dom";
import { Parallel } from "../sweeps/parallel";
import type { Plots } from "../sweeps/scale";
import { Scatter } from "../sweeps/scatter";

const card = document.getElementById("sweep-parallel");
if (card) {
  const parallel = new Parallel();
  const scatter = new Scatter();
  let chart: Chart | null = null;
  let last = "";
  byId("parallel-plot").append(parallel.element);
  byId("sweep-scatter").append(scatter.element);
  parallel.onChange = (shown, all) => {
    const words = shown.length === all ? `${all} trial${all === 1 ? "" : "s"}` : `${shown.length} of ${all} trials`;
    const place = byId("sweep-shown");
    if (place.textContent !== words) place.textContent = words;
  };

  const draw = () => {
    const text = byId("sweep-data").textContent ?? "{}";
    if (text === last) return;
    last = text;
    const plots = JSON.parse(text) as Plots;
    const has = (plots.trials ?? []).length > 0;
    card.hidden = byId("sweep-charts").hidden = !has;
    if (!has) return;
    parallel.show(plots);
    scatter.show(plots);
    if (!chart) {
      chart = new Chart(plots.metric.tag);
      byId("sweep-curves").append(chart.element);
    }
    const curves = plots.curves.map(({ n, points }) => ({
      run: `trial ${n}`,
      tag: plots.metric.tag,
      points: points.map(([step, value]): [number, number, number | null] => [step, 0, value]),
    }));
    chart.show(curves, { smoothing: 0, logarithmic: false, byTime: false }, new Map(curves.map((curve, at) => [curve.run, colorOf(at)])));
  };
  draw();
  document.addEventListener("htmx:afterSettle", draw);
}
