// Live times: `<time data-when>` says how long ago, `<time data-since>` how long already (until `data-until`).
import { duration } from "./words";

const EACH = 1_000;

/** `5 min ago`, `in 2 h`, `just now`: the words of the server's `when`. */
export function relative(time: number, now: number): string {
  const seconds = (now - time) / 1000;
  if (Math.abs(seconds) < 5) return "just now";
  return seconds > 0 ? `${coarse(seconds)} ago` : `in ${coarse(-seconds)}`;
}

function coarse(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  if (days) return `${days} day${days > 1 ? "s" : ""}`;
  if (seconds >= 3_600) return `${Math.floor(seconds / 3_600)} h`;
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds)} s`;
}

/** The zone that the reader chose on the account's page; undefined: the browser's, also where it does not know that one. */
export function zone(): string | undefined {
  const chosen = document.documentElement.dataset.timeZone;
  try {
    new Intl.DateTimeFormat(undefined, { timeZone: chosen });
    return chosen;
  } catch {
    return undefined;
  }
}

let absolute: Intl.DateTimeFormat | undefined;

/** A moment with its date, in the reader's zone. */
export function inFull(time: number | Date): string {
  absolute ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", timeZone: zone() });
  return absolute.format(time);
}

function say(element: HTMLTimeElement, words: string): void {
  if (element.textContent !== words) element.textContent = words;
}

export function tick(): void {
  const now = Date.now();
  for (const element of document.querySelectorAll<HTMLTimeElement>("time[data-when], time[data-since]")) {
    const time = Date.parse(element.dateTime);
    if (Number.isNaN(time)) continue;
    if ("since" in element.dataset) {
      const end = Date.parse(element.dataset.until ?? "");
      say(element, duration((Number.isNaN(end) ? now : end) - time));
    } else say(element, relative(time, now));
    if (!element.dataset.local) {
      element.dataset.local = "1"; // pointing at it tells the reader's own clock
      element.title = inFull(time);
    }
  }
}

export function keepTicking(): void {
  tick();
  setInterval(() => !document.hidden && tick(), EACH);
  document.addEventListener("visibilitychange", () => !document.hidden && tick());
}
