// Builds what pages load into static/built/. Repeating it replaces what was there.
// Every file of src/pages/ is one page area's script (or style sheet) and becomes built/<its name>: nothing is listed here.
import { build } from "esbuild";
import { mkdir, readdir, rm } from "node:fs/promises";
import { writeSprite } from "./icons.mjs";

const here = new URL("./", import.meta.url).pathname;
const folder = `${here}static/built/`;
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });

const common = { bundle: true, minify: true, outdir: folder, target: "es2022", logLevel: "warning", legalComments: "none" };
const areas = (await readdir(`${here}src/pages`)).filter((name) => /\.(ts|css)$/.test(name));
const scripts = areas.filter((name) => name.endsWith(".ts")).map((name) => `src/pages/${name}`);
// These draw as the page of a job does. Built with the others it would take the charts out of that page into a file of their own.
const ALONE = ["src/pages/compare.ts", "src/pages/sweep.ts"];
const sheets = areas.filter((name) => name.endsWith(".css")).map((name) => `src/pages/${name}`);
await Promise.all([
  // What several scripts share (src/shared.ts) is one chunk, loaded once and under a name that holds its content's hash.
  build({
    ...common,
    entryPoints: ["src/portal.ts", ...scripts.filter((path) => !ALONE.includes(path))].map((path) => ({ in: path, out: path.replace(/^.*\/|\.ts$/g, "") })),
    format: "esm",
    splitting: true,
    inject: ["src/shared.ts"],
    chunkNames: "chunks/[name]-[hash]",
  }),
  build({ ...common, entryPoints: ALONE, format: "esm" }),
  build({ ...common, entryPoints: ["src/portal.css", ...sheets].map((path) => ({ in: path, out: path.replace(/^.*\/|\.css$/g, "") })) }),
  // Runs before the first paint, so it is no module: modules wait for the document.
  build({ ...common, entryPoints: ["src/theme.ts"], format: "iife" }),
  writeSprite(`${folder}icons.svg`),
]);
