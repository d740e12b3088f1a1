// The page of one job, and the page of its log. The server renders all that changes of a job; this script asks for it when
// the portal says that the job has changed, keeps the tab's title and icon in step, counts down, and starts what lives by
// itself: the curves and the log. One script for both pages: who reads a log comes from its job.
import { startCurves, type CurvesCard } from "../curves/card";
import { startViewers } from "../log/viewer";
import { keepConnected } from "../sockets";
import { rememberParts } from "../unchanged";
import { duration } from "../words";

const LOOK_AGAIN = 20_000; // nudges may be lost; the page is then late, never wrong
const FIRST_LOOK = 2_000; // a nudge between the page's rendering and its first greeting is lost
const FRESH = 1_000;
const COALESCE_MS = 300;
const RESTS = 1_000;

const status = () => document.getElementById("job-status");
const isOver = () => status()?.dataset.over === "yes";

function startJob(jobId: string, curves: CurvesCard | null): void {
  let due = 0;
  let last = 0;
  const soon = () => {
    due ||= window.setTimeout(
      () => {
        due = 0;
        last = Date.now();
        tellParts();
        curves?.changed();
      },
      Math.max(COALESCE_MS, last + RESTS - Date.now()),
    );
  };
  // Also while the tab is hidden: that is when its title and icon are looked at.
  listenFor(jobId, soon);
  setTimeout(() => last || isOver() || soon(), FIRST_LOOK);
  setInterval(() => !isOver() && soon(), LOOK_AGAIN);
  swapOnlyWhatChanged(soon);
  keepHeadInSight();
  document.addEventListener("htmx:afterRequest", () => {
    showInTab();
    countDown();
  });
  countDown();
  setInterval(() => !document.hidden && countDown(), 1_000);
}

/** Parts that came as they were stay in place, with what is selected or focused in them. What is unfolded stays so. A part
 *  in which a button is held down is asked for again: a button that is replaced meanwhile is never clicked. */
function swapOnlyWhatChanged(askAgain: () => void): void {
  const isUnchanged = rememberParts<string>();
  for (const part of document.querySelectorAll("main [id^=job-]")) isUnchanged(part.id, plain(part));
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const detail = (event as CustomEvent<{ target: Element; fragment: ParentNode; shouldSwap: boolean }>).detail;
    const fresh = detail.fragment.querySelector(`#${detail.target.id}`);
    if (!fresh) return;
    if (detail.target.matches(":active")) {
      detail.shouldSwap = false;
      askAgain();
    } else if (isUnchanged(fresh.id, plain(fresh))) {
      detail.shouldSwap = false;
      renewTokens(detail.target, fresh);
    } else unfoldAsBefore(detail.target, fresh);
  });
}

const tokens = (part: ParentNode) => part.querySelectorAll<HTMLInputElement>("input[name=csrfmiddlewaretoken]");

/** A part as the server rendered it, but for what differs at every look or is shown by a script. */
function plain(part: Element): string {
  const copy = part.cloneNode(true) as Element;
  tokens(copy).forEach((one) => one.remove());
  copy.querySelectorAll<HTMLElement>("[data-copy]").forEach((one) => (one.hidden = false));
  return copy.outerHTML;
}

/** The user may have signed in again since: forms that stay in place are sent with what is valid now. */
function renewTokens(old: Element, fresh: Element): void {
  const [token] = tokens(fresh);
  if (token) tokens(old).forEach((one) => (one.value = token.value));
}

function unfoldAsBefore(old: Element, fresh: Element): void {
  const folds = fresh.querySelectorAll("details");
  old.querySelectorAll("details").forEach((one, at) => folds[at]?.toggleAttribute("open", one.open));
}

function showInTab(): void {
  const { title, icon } = status()?.dataset ?? {};
  if (title && document.title !== title) document.title = title;
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (link && icon && link.getAttribute("href") !== icon) link.href = icon;
}

/** Once the head of the page is out of sight, the job's name and state stay below the header of the portal. */
function keepHeadInSight(): void {
  const head = document.querySelector(".page-head");
  const top = document.querySelector(".site-header")?.clientHeight ?? 0;
  if (!head) return;
  new IntersectionObserver(([one]) => one && document.body.classList.toggle("job-scrolled", !one.isIntersecting), {
    rootMargin: `-${top}px 0px 0px 0px`,
  }).observe(head);
}

function countDown(): void {
  for (const time of document.querySelectorAll<HTMLTimeElement>("time[data-countdown]")) {
    const left = Date.parse(time.dateTime) - Date.now();
    const words = left >= 1_000 ? `in ${duration(left)}` : "now";
    if (time.textContent !== words) time.textContent = words;
  }
}

/** Call `changed` whenever the portal says that the job has changed, and where it may have changed while disconnected. */
function listenFor(jobId: string, changed: () => void): void {
  let isNew = true; // what the first greeting would tell, a page that is fresh has just been told
  const message = ({ type }: { type: string }) => {
    if (type === "job" || (type === "ready" && !(isNew && isFresh()))) changed();
    isNew = false;
  };
  keepConnected({ address: () => `/ws/jobs/${jobId}/`, message });
}

function isFresh(): boolean {
  const [loaded] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  return performance.now() - (loaded?.responseStart ?? 0) < FRESH;
}

const tellParts = () => document.body.dispatchEvent(new CustomEvent("job-changed"));

const card = document.getElementById("job-curves");
const { job, logOf } = document.body.dataset;
if (job) startJob(job, card && startCurves(card, isOver));
if (logOf) listenFor(logOf, tellParts); // the page of a log: what shows the log wants to know
startViewers();
