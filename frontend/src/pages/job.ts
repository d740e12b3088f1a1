// A job's page: its facts, tasks, model and live log.
import { get, post, Refusal, type Job, type Model, type Task } from "../api";
import { byId, el, fill } from "../dom";
import { followLog } from "../log_lines";
import { LogView } from "../log_view";
import { badge, wordOf } from "../phases";
import { progressOf } from "../progress";
import { keepConnected } from "../sockets";
import { between, bytes, moment, shape, strategyWords } from "../words";

const LOOK_AGAIN = 15_000;
const TOGETHER = 300;
const LAST_LINES = 1_000;
const FINAL = ["SUCCEEDED", "FAILED", "STOPPED"];

const jobId = document.body.dataset.job ?? "";
const stop = byId("stop") as HTMLButtonElement;
const log = new LogView(byId("log"), byId("log-end") as HTMLButtonElement, byId("log-stream") as HTMLSelectElement);
let followed = 0;
let leave = () => {};

async function refresh(): Promise<void> {
  try {
    const job = await get<Job>(`jobs/${jobId}/`);
    const tasks = await get<{ results: Task[] }>(`jobs/${jobId}/tasks/`);
    show(job, tasks.results);
    if (job.model) showModel(await get<Model>(`jobs/${jobId}/model/`));
    byId("trouble").hidden = true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    complain(error);
  }
}

function complain(error: Refusal): void {
  fill(byId("trouble"), `${error.message} ${error.remedy}`);
  byId("trouble").hidden = false;
}

function show(job: Job, tasks: Task[]): void {
  document.title = `${job.name}: ${wordOf(job.phase)} · Yardmaster`;
  fill(byId("name"), job.name);
  fill(byId("phase"), badge(job.phase));
  fill(byId("message"), job.message);
  fill(byId("remedy"), job.remedy);
  fill(byId("progress"), progressOf(job.progress));
  fill(byId("facts"), ...facts(job));
  fill(byId("tasks"), ...tasks.map(taskRow));
  byId("loading").hidden = true;
  byId("job").hidden = false;
  stop.hidden = FINAL.includes(job.phase);
  stop.disabled = job.wanted === "STOP";
  stop.textContent = job.wanted === "STOP" ? "Stopping …" : "Stop";
  follow(job);
}

function facts(job: Job): HTMLElement[] {
  const since = job.started_at ?? job.queued_at;
  const rows: [string, string | HTMLElement][] = [
    ["Shape", shape(job.spec.roles)],
    ["Strategy", strategyWords(job.strategy)],
    ["Owner", `${job.owner} in ${job.namespace_slug}`],
    ["Engine", job.engine],
    ["Launched", moment(job.created_at)],
    [timeWord(job), between(since, job.decided_at)],
  ];
  if (job.attempt > 1) rows.push(["Attempt", String(job.attempt)]);
  return rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}

function timeWord(job: Job): string {
  if (FINAL.includes(job.phase)) return "Took";
  return job.started_at ? "Runs for" : "Waits for";
}

function taskRow(task: Task): HTMLElement {
  const notes: string[] = [];
  if (task.message || task.reason) notes.push(task.message || task.reason);
  if (task.exit_code !== null && task.exit_code !== 0) notes.push(`exit code ${task.exit_code}`);
  if (task.restarts) notes.push(task.restarts === 1 ? "restarted once" : `restarted ${task.restarts} times`);
  if (task.peak_memory) notes.push(`peak ${bytes(task.peak_memory)}`);
  return el(
    "tr",
    { role: "row" },
    el("th", { scope: "row", role: "rowheader" }, `${task.role} ${task.index}`),
    el("td", { role: "cell" }, badge(task.phase)),
    el("td", { role: "cell" }, progressOf(task.progress)),
    el("td", { role: "cell", class: "text-secondary" }, notes.join(" · ")),
  );
}

function showModel(model: Model): void {
  byId("model").hidden = false;
  const total = `${model.files.length === 1 ? "1 file" : `${model.files.length} files`}, ${bytes(model.size)}`;
  fill(byId("model-size"), total);
  const rows = model.files.map((file) =>
    el("li", {}, el("a", { href: file.url, download: "" }, file.path), " ", el("span", { class: "text-secondary" }, bytes(file.size))),
  );
  fill(byId("model-files"), ...rows);
}

function follow(job: Job): void {
  if (followed === job.attempt) return;
  leave();
  followed = job.attempt;
  const state = byId("log-state");
  leave = followLog(jobId, job.attempt, LAST_LINES, {
    lines: (lines) => log.add(lines),
    connected: (connected) => fill(state, connected ? "live" : "connection lost, trying again …"),
    ended: (code) => fill(state, code === 1000 ? "complete" : "not available"),
  });
}

stop.addEventListener("click", async () => {
  stop.disabled = true;
  try {
    await post(`jobs/${jobId}/stop/`, {});
    await refresh();
  } catch (error) {
    stop.disabled = false;
    if (!(error instanceof Refusal)) throw error;
    complain(error);
  }
});

let due = 0;
function soon(): void {
  due ||= window.setTimeout(() => {
    due = 0;
    void refresh();
  }, TOGETHER);
}

void refresh();
setInterval(soon, LOOK_AGAIN);
keepConnected({ address: () => `/ws/jobs/${jobId}/`, message: (data) => data.type !== "ping" && soon() });
