// The icons that pages use, in one small file: Tabler has five thousand of them.
// An icon is used by `icon "name"` in a template, `icon="name"` in an include or in Python, `icon("name")` in a script.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const here = new URL("./", import.meta.url).pathname;
const USED = /\bicon(?:=|\(|\s+)"([a-z0-9-]+)"/g;
const SOURCES = [
  { folder: join(here, "templates"), ending: ".html" },
  { folder: join(here, "src"), ending: ".ts" },
  { folder: join(here, "../apps"), ending: ".py" },
  { folder: join(here, "../platform/portal"), ending: ".py" },
];

async function usedIn({ folder, ending }) {
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(ending));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), "utf8")));
  return texts.flatMap((text) => [...text.matchAll(USED)].map((match) => match[1]));
}

async function symbolOf(name) {
  const file = join(here, `node_modules/@tabler/icons/icons/outline/${name}.svg`);
  const svg = await readFile(file, "utf8").catch(() => {
    throw new Error(`There is no Tabler icon "${name}". https://tabler.io/icons lists them.`);
  });
  const shapes = svg.replace(/^[\s\S]*?<svg[^>]*>|<\/svg>\s*$|<path stroke="none"[^>]*>/g, "").replace(/\s*\n\s*/g, "");
  return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">${shapes}</symbol>`;
}

export async function writeSprite(target) {
  const names = [...new Set((await Promise.all(SOURCES.map(usedIn))).flat())].sort();
  const symbols = await Promise.all(names.map(symbolOf));
  await writeFile(target, `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join("")}</svg>\n`);
}
