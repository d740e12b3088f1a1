// Home: what runs, what waits and why, and what ended lately. The portal nudges; the rows are read over the API.
import { get, Refusal, type Job } from "../api";
import { append, byId, el, fill } from "../dom";
import { badge } from "../phases";
import { progressOf } from "../progress";
import { keepConnected } from "../sockets";
import { between, moment, shape, strategyWords } from "../words";

const LOOK_AGAIN = 30_000; // nudges may be lost; the page is then late, never wrong
const TOGETHER = 300;

interface Page {
  next: string | null;
  results: Job[];
}

const running = byId("running");
const waiting = byId("waiting");
const ended = byId("ended");
const trouble = byId("trouble");

function phases(...names: string[]): string {
  return names.map((name) => `phase=${name}`).join("&");
}

async function refresh(): Promise<void> {
  try {
    const [now, queue, past] = await Promise.all([
      get<Page>(`jobs/?${phases("STARTING", "RUNNING", "STOPPING")}&page_size=50`),
      get<Page>(`jobs/?${phases("QUEUED")}&page_size=50`),
      get<Page>(`jobs/?${phases("SUCCEEDED", "FAILED", "STOPPED")}&page_size=10`),
    ]);
    show(now, queue, past);
    trouble.hidden = true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fill(trouble, `${error.message} ${error.remedy}`);
    trouble.hidden = false;
  }
}

function show(now: Page, queue: Page, past: Page): void {
  const empty = now.results.length + queue.results.length + past.results.length === 0;
  byId("first-steps").hidden = !empty;
  byId("jobs").hidden = empty;
  byId("loading").hidden = true;
  section(running, now, runningRow, "Nothing runs now.");
  queue.results.sort((a, b) => (a.position ?? Infinity) - (b.position ?? Infinity));
  section(waiting, queue, waitingRow, "Nothing waits.");
  section(ended, past, endedRow, "Nothing has ended yet.");
}

function section(list: Element, page: Page, row: (job: Job) => HTMLElement, nothing: string): void {
  const rows = page.results.map(row);
  if (!rows.length) rows.push(el("li", { class: "list-group-item text-secondary" }, nothing));
  if (page.next && list !== ended) rows.push(el("li", { class: "list-group-item text-secondary" }, "… and more."));
  fill(list, ...rows);
}

function row(job: Job, ...details: (HTMLElement | string | null)[]): HTMLElement {
  const name = el("a", { href: `/jobs/${job.id}/`, class: "job-name" }, job.name);
  const where = `${shape(job.spec.roles)} · ${strategyWords(job.strategy)} · ${job.owner} in ${job.namespace_slug}`;
  const head = el("div", { class: "job-head" }, name, badge(job.phase));
  const item = el("li", { class: "list-group-item" }, head, el("div", { class: "text-secondary small" }, where));
  append(item, details);
  return item;
}

function runningRow(job: Job): HTMLElement {
  const since = job.started_at ?? job.queued_at;
  const time = since ? el("div", { class: "small text-secondary" }, "since ", moment(since)) : null;
  return row(job, progressOf(job.progress), time);
}

function waitingRow(job: Job): HTMLElement {
  const ahead = job.position === null ? "" : job.position === 0 ? "Next in the queue. " : `${job.position} ahead. `;
  const why = el("div", { class: "small" }, `${ahead}${job.message || "Not looked at yet."}`);
  return row(job, why, job.remedy ? el("div", { class: "small text-secondary" }, job.remedy) : null);
}

function endedRow(job: Job): HTMLElement {
  const why = job.phase === "FAILED" && job.message ? el("div", { class: "small" }, job.message) : null;
  const time = el("div", { class: "small text-secondary" });
  if (job.decided_at) append(time, [moment(job.decided_at), ` · took ${between(job.started_at ?? job.queued_at, job.decided_at)}`]);
  return row(job, why, time);
}

let due = 0;
function soon(): void {
  due ||= window.setTimeout(() => {
    due = 0;
    void refresh();
  }, TOGETHER);
}

void refresh();
setInterval(soon, LOOK_AGAIN);
keepConnected({
  address: () => "/ws/jobs/",
  message: (data) => data.type !== "ping" && soon(), // `ready` after a cut counts too: something may have been missed
});
