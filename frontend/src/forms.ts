// Forms: sent once, with a sign that they are on their way; what was typed into `data-guard` is not lost by a closed tab.
// `data-guard="changed"`: the portal has refused what was typed, and gives it back. `data-download` on a button: its answer
// is a file, so the form stays.

const dirty = new Set<HTMLFormElement>(document.querySelectorAll<HTMLFormElement>('form[data-guard="changed"]'));

document.addEventListener("input", (event) => {
  const form = (event.target as Element).closest<HTMLFormElement>("form[data-guard]");
  if (form) dirty.add(form);
});
addEventListener("beforeunload", (event) => {
  for (const form of dirty) if (form.isConnected) event.preventDefault();
});

document.addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  if (event.defaultPrevented || form.method !== "post" || event.submitter?.hasAttribute("data-download")) return;
  if (form.ariaBusy === "true") {
    event.preventDefault(); // a second click while the first is on its way
    return;
  }
  dirty.delete(form);
  form.ariaBusy = "true";
  const button = event.submitter;
  if (button instanceof HTMLButtonElement) button.classList.add("is-sending");
});

// Back from the next page the browser shows this one as it was left.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll<HTMLFormElement>('form[aria-busy="true"]')) form.ariaBusy = null;
  for (const button of document.querySelectorAll(".is-sending")) button.classList.remove("is-sending");
});

/** Who was sent here to sign in meant a place in a page, such as a line of a log: the server never hears of it. */
if (location.hash) {
  const next = document.querySelector<HTMLInputElement>("input[type=hidden][name=next]");
  if (next && !next.value.includes("#")) next.value += location.hash;
}
