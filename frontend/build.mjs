// Builds what pages load into static/built/. Repeating it replaces what was there.
import { build } from "esbuild";
import { rm } from "node:fs/promises";

const folder = new URL("./static/built/", import.meta.url).pathname;
await rm(folder, { recursive: true, force: true });

const common = { bundle: true, minify: true, outdir: folder, target: "es2022", logLevel: "warning", legalComments: "none" };
await build({ ...common, entryPoints: ["src/portal.ts", "src/home.ts", "src/job.ts", "src/portal.css"], format: "esm" });
// Runs before the first paint, so it is no module: modules wait for the document.
await build({ ...common, entryPoints: ["src/theme.ts"], format: "iife" });
