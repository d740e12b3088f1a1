// The list of jobs: rows that are fetched again when the portal says they have changed, and what is chosen in them.
import { htmx } from "../htmx";
import { keepConnected } from "../sockets";

const DEBOUNCE_MS = 400;
const LOOK_AGAIN = 30_000; // nudges may be lost; a row is then late, never wrong
const MOST_AT_ONCE = 50;

// What is chosen.

const ticks = () => [...document.querySelectorAll<HTMLInputElement>("#job-rows input[name=job]")];

function showChosen(): void {
  const all = document.querySelector<HTMLInputElement>("#job-all");
  const bar = document.getElementById("job-bulk");
  const count = document.getElementById("job-count");
  if (!all || !bar || !count) return;
  const chosen = ticks().filter((tick) => tick.checked).length;
  all.hidden = false;
  all.checked = chosen > 0 && chosen === ticks().length;
  all.indeterminate = chosen > 0 && !all.checked;
  bar.dataset.live = "";
  bar.dataset.chosen = String(chosen);
  count.textContent = chosen ? `${chosen} chosen` : "";
  for (const button of bar.querySelectorAll<HTMLButtonElement>("button")) {
    button.disabled = chosen < (["compare", "tensorboard"].includes(button.value) ? 2 : 1);
  }
}

document.addEventListener("change", (event) => {
  const box = event.target as HTMLInputElement;
  if (box.id === "job-all") for (const tick of ticks()) tick.checked = box.checked;
  if (box.id === "job-all" || box.name === "job") showChosen();
});

// Live rows.

const changed = new Set<string>();
const strangers = new Set<string>();
let due = 0;
let isBusy = false;

const rowOf = (id: string) => document.getElementById(`job-${id}`);
const isFirstPage = () => document.getElementById("job-list")?.dataset.first === "true";

function soon(): void {
  due ||= window.setTimeout(() => {
    due = 0;
    void refresh();
  }, DEBOUNCE_MS);
}

/** One at a time: of requests that wait for another, htmx keeps the last one only. */
async function refresh(): Promise<void> {
  if (isBusy || document.hidden) return; // its end, or the next look, sees all of it
  isBusy = true;
  try {
    await fetchChanged();
  } finally {
    isBusy = false;
    if (changed.size) soon();
  }
}

async function fetchChanged(): Promise<void> {
  const ids = [...changed].slice(0, MOST_AT_ONCE);
  for (const id of ids) changed.delete(id);
  const mine = ids.filter(rowOf);
  if (mine.length) {
    const columns = document.getElementById("job-list")?.dataset.columns ?? "";
    const asked = [...mine.map((id) => `job=${encodeURIComponent(id)}`), `columns=${encodeURIComponent(columns)}`];
    await htmx.ajax("get", `/jobs/rows/?${asked.join("&")}`, { swap: "none" });
  }
  // A job that came while one looks: fetched once, and not while something is being chosen.
  const fresh = ids.filter((id) => !rowOf(id) && !strangers.has(id));
  for (const id of fresh) strangers.add(id);
  if (fresh.length && isFirstPage() && !ticks().some((tick) => tick.checked)) {
    await htmx.ajax("get", location.pathname + location.search, { target: "#job-list", swap: "outerHTML" });
  }
}

function lookAtAll(): void {
  for (const row of document.querySelectorAll<HTMLElement>("#job-rows [data-job]")) changed.add(row.dataset.job ?? "");
  soon();
}

// A row that is put in another's place keeps what was chosen in it, and the reader's place.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = (event as CustomEvent<{ target: HTMLElement; fragment: DocumentFragment }>).detail;
  const tick = target.querySelector<HTMLInputElement>("input[name=job]");
  const next = fragment.querySelector<HTMLInputElement>("input[name=job]");
  if (tick && next) next.checked = tick.checked;
  const focused = target.contains(document.activeElement) ? document.activeElement?.id : "";
  if (focused) requestAnimationFrame(() => document.getElementById(focused)?.focus({ preventScroll: true }));
});
for (const name of ["htmx:afterSettle", "htmx:oobAfterSwap", "pageshow"]) addEventListener(name, showChosen);

showChosen();
let wasReady = false;
setInterval(lookAtAll, LOOK_AGAIN);
document.addEventListener("visibilitychange", () => !document.hidden && lookAtAll());
keepConnected({
  address: () => "/ws/jobs/",
  message: (data) => {
    if (data.type === "job") changed.add(data.id as string), soon();
    else if (data.type === "ready") {
      if (wasReady) lookAtAll(); // something may have been missed while it was cut
      wasReady = true;
    }
  },
});
