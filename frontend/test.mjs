// Bundles the tests of tests/ for node's own test runner, and runs them. Nothing is left behind.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const here = new URL("./", import.meta.url).pathname;
const folder = await mkdtemp(join(tmpdir(), "yardmaster-frontend-"));
try {
  const tests = (await readdir(`${here}tests`)).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => `${here}tests/${name}`),
    bundle: true,
    platform: "node",
    format: "esm",
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
    loader: { ".json": "json" },
  });
  const bundles = tests.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...bundles], { stdio: "inherit" }).status ?? 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
