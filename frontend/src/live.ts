// Parts of a page that the server renders again. `data-nudges="/ws/…"` on an element turns the portal's nudges into its
// event `nudge` (htmx: `hx-trigger="nudge, every 30s"`); `data-live` spares a swap that would change nothing.
import { keepConnected } from "./sockets";
import { rememberParts } from "./unchanged";

const COALESCE_MS = 300;
const RESTS = 1_000; // however fast jobs change, a part is asked for once a second at most

function connect(element: HTMLElement): void {
  let due = 0;
  let last = 0;
  let missed = false;
  const tell = () => {
    due = 0;
    last = Date.now();
    missed = false;
    element.dispatchEvent(new CustomEvent("nudge"));
  };
  const soon = () => {
    if (document.hidden) missed = true;
    else due ||= window.setTimeout(tell, Math.max(COALESCE_MS, last + RESTS - Date.now()));
  };
  document.addEventListener("visibilitychange", () => !document.hidden && missed && soon());
  keepConnected({
    address: () => element.dataset.nudges ?? "",
    message: (data) => data.type !== "ping" && soon(), // `ready` after a cut counts too: something may have been missed
  });
}

for (const element of document.querySelectorAll<HTMLElement>("[data-nudges]")) connect(element);

const isUnchanged = rememberParts<Element>();

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, serverResponse, shouldSwap } = (event as CustomEvent).detail;
  if (!shouldSwap || !(target instanceof HTMLElement) || !("live" in target.dataset)) return;
  if (isUnchanged(target, serverResponse as string)) (event as CustomEvent).detail.shouldSwap = false;
});
