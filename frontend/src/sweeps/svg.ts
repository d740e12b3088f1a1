// Building pictures: SVG elements, and the colours of trials, which tell worse from better in light and dark.

export function svg(tag: string, attributes: Record<string, string | number> = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

// From worse to better: blue over teal to amber, each readable on white and on the dark page.
const RAMP: [number, number, number][] = [[71, 105, 196], [33, 145, 140], [82, 170, 88], [214, 150, 20], [224, 94, 20]];

/** The colour of how good a trial is, from 0 to 1. */
export function shade(good: number): string {
  const at = Math.min(1, Math.max(0, good)) * (RAMP.length - 1);
  const low = RAMP[Math.floor(at)] ?? RAMP[0]!;
  const high = RAMP[Math.ceil(at)] ?? low;
  const mixed = low.map((one, i) => Math.round(one + ((high[i] ?? one) - one) * (at - Math.floor(at))));
  return `rgb(${mixed.join(",")})`;
}

export function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
