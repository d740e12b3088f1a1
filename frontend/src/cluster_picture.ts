// The cluster that a job will be, drawn: who there is, and who speaks with whom. The words beside it say the same.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 400;
const BOX = { width: 70, height: 38, gap: 12 };
const MOST = 5; // boxes in a row; the last one then says how many more there are
const ROWS_APART = 62;

interface Place {
  x: number;
  y: number;
}

type Counts = ReadonlyMap<string, number>;

function element(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

/** The rows of the picture, from top to bottom, and which of them speak with each other. */
function rowsOf(strategy: string, counts: Counts): { rows: string[]; ring: boolean } {
  const there = (...roles: string[]) => roles.filter((role) => counts.has(role));
  if (strategy === "parameter_server") return { rows: there("chief", "worker", "ps"), ring: false };
  if (strategy === "between_graph" || strategy === "in_graph") return { rows: there("ps", "worker"), ring: false };
  if (strategy === "spark") return { rows: there("driver", "executor"), ring: false };
  return { rows: there("worker"), ring: strategy === "multi_worker_mirrored" };
}

export function drawCluster(strategy: string, counts: Counts): SVGElement {
  const { rows, ring } = rowsOf(strategy, counts);
  const beside = ["chief", "evaluator"].filter((role) => counts.has(role) && !rows.includes(role));
  const height = Math.max(1, rows.length) * ROWS_APART + (ring ? 26 : 0) - 8;
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "cluster", focusable: "false" });
  const places = rows.map((role, row) => placesOf(counts.get(role) ?? 0, row, rows.length === 1 ? beside : row === rows.length - 1 ? beside : []));
  for (let row = 1; row < rows.length; row += 1) link(svg, places[row - 1] ?? [], places[row] ?? []);
  if (ring) circle(svg, places[0] ?? []);
  rows.forEach((role, row) => boxes(svg, role, counts.get(role) ?? 0, places[row] ?? []));
  const base = places[places.length - 1]?.[0]?.y ?? 0;
  beside.forEach((role, number) => {
    const place = { x: WIDTH - BOX.width - number * (BOX.width + BOX.gap), y: base };
    if (role === "chief" && rows[0] === "ps") link(svg, places[0] ?? [], [place]);
    box(svg, role, role, place);
  });
  return svg;
}

function placesOf(count: number, row: number, beside: string[]): Place[] {
  const shown = Math.min(count, MOST - beside.length);
  const room = WIDTH - beside.length * (BOX.width + BOX.gap);
  const width = shown * BOX.width + (shown - 1) * BOX.gap;
  const start = (room - width) / 2;
  return Array.from({ length: shown }, (_, number) => ({ x: start + number * (BOX.width + BOX.gap), y: row * ROWS_APART + 1 }));
}

function boxes(svg: SVGElement, role: string, count: number, places: Place[]): void {
  places.forEach((place, number) => {
    const more = count - places.length + 1;
    const isRest = number === places.length - 1 && more > 1;
    box(svg, role, isRest ? `+ ${more}` : count === 1 && role !== "worker" ? role : `${role} ${number}`, place);
  });
}

function box(svg: SVGElement, role: string, words: string, { x, y }: Place): void {
  svg.append(
    element("rect", { x, y, width: BOX.width, height: BOX.height, rx: 6, class: `cluster-box cluster-${role}` }),
    element("text", { x: x + BOX.width / 2, y: y + BOX.height / 2 + 4, class: "cluster-name", "text-anchor": "middle" }, words),
  );
}

function link(svg: SVGElement, above: Place[], below: Place[]): void {
  for (const from of above) {
    for (const to of below) {
      const middle = BOX.width / 2;
      const [x1, y1, x2, y2] = [from.x + middle, from.y + BOX.height, to.x + middle, to.y];
      const bend = (y1 + y2) / 2;
      svg.append(element("path", { d: `M${x1} ${y1}C${x1} ${bend} ${x2} ${bend} ${x2} ${y2}`, class: "cluster-link" }));
    }
  }
}

/** Each with the next, and the last with the first. */
function circle(svg: SVGElement, places: Place[]): void {
  for (let number = 1; number < places.length; number += 1) {
    const [from, to] = [places[number - 1], places[number]];
    if (from && to) svg.append(element("path", { d: `M${from.x + BOX.width} ${from.y + 19}H${to.x}`, class: "cluster-link" }));
  }
  const [first, last] = [places[0], places[places.length - 1]];
  if (!first || !last || places.length < 3) return;
  const [x1, x2, y] = [first.x + BOX.width / 2, last.x + BOX.width / 2, first.y + BOX.height];
  svg.append(element("path", { d: `M${x1} ${y}C${x1} ${y + 28} ${x2} ${y + 28} ${x2} ${y}`, class: "cluster-link" }));
}
