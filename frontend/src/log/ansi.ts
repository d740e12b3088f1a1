// What a terminal would show of a line: text in runs, each with the classes of its colours. Colours become the sixteen
// that the style sheet names, since a page with a strict policy cannot style one run by itself. No state is kept from
// line to line: lines are shown from any place on.

export interface Run {
  text: string;
  /** Classes, with spaces between; empty for plain text. */
  look: string;
}

const SGR = /\x1b\[([0-9;:]*)m/g;
const OTHER = /\x1b\[[0-?]*[ -/]*[@-ln-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[@-Z\\^_=>78]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;
const CUBE = [0, 95, 135, 175, 215, 255];
const BASE: [number, number, number][] = [
  [0, 0, 0], [205, 49, 49], [13, 188, 121], [229, 229, 16], [36, 114, 200], [188, 63, 188], [17, 168, 205], [229, 229, 229],
  [102, 102, 102], [241, 76, 76], [35, 209, 139], [245, 245, 67], [59, 142, 234], [214, 112, 214], [41, 184, 219], [255, 255, 255],
]; // prettier-ignore

interface Style {
  fore: number | null;
  back: number | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

const PLAIN: Style = { fore: null, back: null, bold: false, dim: false, italic: false, underline: false, inverse: false };

/** The line's runs. What a carriage return overwrote is left out, as on a terminal. */
export function runsOf(line: string): Run[] {
  if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(line)) return line ? [{ text: line, look: "" }] : [];
  const text = lastState(line).replace(OTHER, "");
  const runs: Run[] = [];
  let style = PLAIN;
  let at = 0;
  const push = (piece: string) => {
    const clean = piece.replaceAll("\x1b", "");
    if (!clean) return;
    const look = lookOf(style);
    const last = runs[runs.length - 1];
    if (last && last.look === look) last.text += clean;
    else runs.push({ text: clean, look });
  };
  for (const found of text.matchAll(SGR)) {
    push(text.slice(at, found.index));
    style = changed(style, found[1] ?? "");
    at = found.index + found[0].length;
  }
  push(text.slice(at));
  return runs;
}

/** The line without colours and control characters. */
export function plainOf(line: string): string {
  return runsOf(line)
    .map((run) => run.text)
    .join("");
}

function lastState(line: string): string {
  if (!line.includes("\r")) return line;
  const states = line.split("\r").filter((state) => state !== "");
  return states[states.length - 1] ?? "";
}

function changed(style: Style, codes: string): Style {
  const next = { ...style };
  const numbers = codes === "" ? [0] : codes.split(/[;:]/).map((code) => Number(code || 0));
  for (let i = 0; i < numbers.length; i += 1) {
    const code = numbers[i] ?? 0;
    if (code === 38 || code === 48) {
      const [color, used] = extended(numbers.slice(i + 1));
      if (code === 38) next.fore = color;
      else next.back = color;
      i += used;
    } else apply(next, code);
  }
  return next;
}

function apply(style: Style, code: number): void {
  if (code === 0) Object.assign(style, PLAIN);
  else if (code === 1) style.bold = true;
  else if (code === 2) style.dim = true;
  else if (code === 3) style.italic = true;
  else if (code === 4) style.underline = true;
  else if (code === 7) style.inverse = true;
  else if (code === 22) style.bold = style.dim = false;
  else if (code === 23) style.italic = false;
  else if (code === 24) style.underline = false;
  else if (code === 27) style.inverse = false;
  else if (code === 39) style.fore = null;
  else if (code === 49) style.back = null;
  else if (code >= 30 && code <= 37) style.fore = code - 30;
  else if (code >= 40 && code <= 47) style.back = code - 40;
  else if (code >= 90 && code <= 97) style.fore = code - 82;
  else if (code >= 100 && code <= 107) style.back = code - 92;
}

/** The colour that follows 38 or 48, as one of sixteen, and how many numbers said it. */
function extended(numbers: number[]): [number | null, number] {
  if (numbers[0] === 5) return [of256(numbers[1] ?? 0), 2];
  if (numbers[0] === 2) return [nearest(numbers[1] ?? 0, numbers[2] ?? 0, numbers[3] ?? 0), 4];
  return [null, numbers.length];
}

function of256(color: number): number {
  if (color < 16) return color;
  if (color >= 232) {
    const gray = 8 + (color - 232) * 10;
    return nearest(gray, gray, gray);
  }
  const cube = color - 16;
  return nearest(CUBE[Math.floor(cube / 36)] ?? 0, CUBE[Math.floor(cube / 6) % 6] ?? 0, CUBE[cube % 6] ?? 0);
}

function nearest(red: number, green: number, blue: number): number {
  let best = 0;
  let least = Infinity;
  BASE.forEach(([r, g, b], index) => {
    const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

function lookOf(style: Style): string {
  const { fore, back } = style.inverse ? { fore: style.back ?? 0, back: style.fore ?? 7 } : style;
  const looks: string[] = [];
  if (fore !== null) looks.push(`ansi-${fore}`);
  if (back !== null) looks.push(`ansi-on-${back}`);
  for (const name of ["bold", "dim", "italic", "underline"] as const) if (style[name]) looks.push(`ansi-${name}`);
  return looks.join(" ");
}
