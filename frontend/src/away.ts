// Says on an open page that the portal is away, and takes that back when it is there again. Whatever gets no answer (a
// socket, a part of the page, a request to the API) says so on the document; then the portal itself is asked.

import { toast } from "./toast";

const EACH = 2_500;
const AFTER = 4_000; // a short pause, as at a restart, is not worth a word
const PATIENCE = 8_000;
const WORDS = "The portal does not respond. Running jobs continue. This page reconnects by itself.";

const banner = document.createElement("div");
banner.className = "portal-away";
banner.setAttribute("role", "status");
banner.hidden = true;
document.querySelector("main")?.before(banner);

let since = 0;
let isLooking = false;
let hasLostPart = false;

async function isThere(): Promise<boolean> {
  try {
    return (await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) })).ok;
  } catch {
    return false;
  }
}

/** `lostPart`: what got no answer was a part of the page. Where the portal is there after all, no banner says so. */
async function look(lostPart = false): Promise<void> {
  hasLostPart ||= lostPart;
  if (isLooking) return;
  isLooking = true;
  since = Date.now();
  if (await isThere()) {
    isLooking = false;
    if (hasLostPart) toast("A part of the page did not load. Try again.", "error");
    hasLostPart = false;
    return;
  }
  while (!(await isThere())) {
    if (Date.now() - since >= AFTER) show(WORDS);
    await new Promise((done) => setTimeout(done, EACH));
  }
  isLooking = hasLostPart = false;
  if (banner.hidden) return;
  show("");
  window.dispatchEvent(new Event("online")); // sockets come back now, and do not wait for their turn
}

function show(words: string): void {
  banner.hidden = words === "";
  if (banner.textContent !== words) banner.textContent = words;
}

document.addEventListener("portal-silent", (event) => void look(event instanceof CustomEvent && event.detail === "part"));
window.addEventListener("offline", () => void look());
