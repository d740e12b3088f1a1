// The page of one job. The server renders all that changes; this script asks for it when the portal says that the job has
// changed, keeps the tab's title and icon in step, counts down, and starts the curves and the log.
import { startCurves } from "../curves/card";
import { startViewers } from "../log/viewer";
import { keepConnected } from "../sockets";
import { duration } from "../words";

const LOOK_AGAIN = 20_000; // nudges may be lost; the page is then late, never wrong
const TOGETHER = 300;
const RESTS = 1_000;

const jobId = document.body.dataset.job ?? "";
const status = () => document.getElementById("job-status");

// --- What changes ------------------------------------------------------------------------------------------------------

// Words of a time differ at every look though nothing has happened.
const still = (html: string) => html.replace(/<time[^>]*>[^<]*<\/time>/g, "");
const shown = new Map<string, string>();

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const detail = (event as CustomEvent<{ target: Element; fragment: ParentNode; shouldSwap: boolean }>).detail;
  const fresh = still(detail.fragment.querySelector(`#${detail.target.id}`)?.outerHTML ?? "");
  if (shown.get(detail.target.id) === fresh) detail.shouldSwap = false;
  shown.set(detail.target.id, fresh);
});

function showInTab(): void {
  const now = status();
  if (!now) return;
  if (now.dataset.title && document.title !== now.dataset.title) document.title = now.dataset.title;
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (icon && now.dataset.icon && icon.getAttribute("href") !== now.dataset.icon) icon.href = now.dataset.icon;
}

document.addEventListener("htmx:afterRequest", () => {
  showInTab();
  countDown();
});

let due = 0;
let last = 0;
function soon(): void {
  due ||= window.setTimeout(
    () => {
      due = 0;
      last = Date.now();
      document.body.dispatchEvent(new CustomEvent("job-changed"));
      curves?.changed();
    },
    Math.max(TOGETHER, last + RESTS - Date.now()),
  );
}

// Also while the tab is hidden: that is when its title and icon are looked at.
keepConnected({ address: () => `/ws/jobs/${jobId}/`, message: (data) => data.type !== "ping" && soon() });
setInterval(() => status()?.dataset.over !== "yes" && soon(), LOOK_AGAIN);

// --- Times to come -----------------------------------------------------------------------------------------------------

function countDown(): void {
  for (const time of document.querySelectorAll<HTMLTimeElement>("time[data-countdown]")) {
    const left = Date.parse(time.dateTime) - Date.now();
    const words = left >= 1_000 ? `in ${duration(left)}` : "now";
    if (time.textContent !== words) time.textContent = words;
  }
}

countDown();
setInterval(() => !document.hidden && countDown(), 1_000);

const card = document.getElementById("job-curves");
const curves = card && startCurves(card, () => status()?.dataset.phase === "RUNNING");
startViewers();
