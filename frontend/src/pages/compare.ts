// Chosen jobs side by side: a chart for each chosen scalar, with a line for each job and run. The numbers stand below it.
import { get, Refusal } from "../api";
import { colorOf, type Curve } from "../curves/series";
import { el } from "../dom";

const POINTS = 600;

interface Source {
  id: string;
  attempt: string;
  name: string;
}

async function draw(place: HTMLElement): Promise<void> {
  const tag = place.dataset.tag ?? "";
  const sources = [...place.querySelectorAll<HTMLElement>("[data-curves-of]")].map((one) => ({
    id: one.dataset.curvesOf ?? "",
    attempt: one.dataset.attempt ?? "",
    name: one.dataset.name ?? "",
  }));
  const waits = el("p", { class: "text-secondary small", role: "status" }, "Loading scalars …");
  place.append(waits);
  try {
    const [{ Chart }, ...curves] = await Promise.all([import("../curves/chart"), ...sources.map((one) => curvesOf(one, tag))]);
    const chart = new Chart(tag);
    waits.replaceWith(chart.element);
    const lines = curves.flat();
    const colors = new Map(lines.map((curve, number) => [curve.run, colorOf(number)]));
    chart.show(lines, { smoothing: 0, logarithmic: false, byTime: false }, colors);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    waits.textContent = `${error.message} ${error.remedy}`;
  }
}

/** One job's curves of the tag, each named after the job, and after its run where there are several. */
async function curvesOf({ id, attempt, name }: Source, tag: string): Promise<Curve[]> {
  const query = new URLSearchParams({ attempt, tag, points: String(POINTS) });
  const { results } = await get<{ results: Curve[] }>(`jobs/${id}/scalars/?${query.toString()}`);
  return results.map((curve) => ({ ...curve, run: results.length > 1 ? `${name} · ${curve.run}` : name }));
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    void draw(target as HTMLElement);
  }
}, { rootMargin: "200px" });
for (const place of document.querySelectorAll<HTMLElement>(".compare-chart")) seen.observe(place);

// With a script a tick is enough.
const form = document.getElementById("compare-form") as HTMLFormElement | null;
form?.addEventListener("change", () => form.requestSubmit());
document.getElementById("compare-draw")?.setAttribute("hidden", "");
