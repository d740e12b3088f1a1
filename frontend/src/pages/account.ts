// The account's pages: the choices that belong to this browser, the list of time zones, roles that save themselves.
import { allowNotes, notesAreOn, stopNotes } from "../browser_notes_choice";
import { choose, chosen, type Choice } from "../theme_choice";

for (const part of document.querySelectorAll<HTMLElement>("[data-needs-script]")) part.hidden = false;

// On a phone the tabs are wider than the page: the present one is to be seen.
const places = document.querySelector<HTMLElement>(".account-nav");
const here = places?.querySelector<HTMLElement>("[aria-current]");
// Sideways alone: the page itself stays where it is.
if (places && here) places.scrollLeft = here.offsetLeft - places.offsetLeft - (places.clientWidth - here.offsetWidth) / 2;

const themes = document.querySelector("[data-theme-choices]");
if (themes) {
  const radios = [...themes.querySelectorAll<HTMLInputElement>("input")];
  const show = () => radios.forEach((radio) => (radio.checked = radio.value === chosen()));
  themes.addEventListener("change", (event) => {
    choose((event.target as HTMLInputElement).value as Choice);
    document.dispatchEvent(new CustomEvent("theme"));
  });
  document.querySelector("[data-theme-toggle]")?.addEventListener("click", () => setTimeout(show));
  show();
}

const zone = document.querySelector<HTMLInputElement>("[data-time-zone-choice]");
if (zone) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const now = document.querySelector("[data-time-zone-now]");
  if (now) now.textContent = ` That is ${own} here.`;
  zone.addEventListener("focus", () => {
    const list = document.getElementById("time-zones");
    if (!list || list.childElementCount) return;
    const names = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((name) => name !== "UTC")];
    list.append(...names.map((name) => Object.assign(document.createElement("option"), { value: name })));
  });
}

// Ticking a scope means: only these.
for (const scope of document.querySelectorAll<HTMLInputElement>("[data-scope]"))
  scope.addEventListener("change", () => {
    const only = document.querySelector<HTMLInputElement>("input[name=reach][value=scopes]");
    if (scope.checked && only) only.checked = true;
  });

for (const form of document.querySelectorAll<HTMLFormElement>("[data-save-on-change]")) {
  const button = form.querySelector<HTMLButtonElement>("[data-save]");
  const select = form.querySelector("select");
  if (!button || !select) continue;
  const was = select.value;
  button.hidden = true; // until there is something to save: choosing by keyboard passes through every role
  select.addEventListener("change", () => (button.hidden = select.value === was));
}

const notes = document.querySelector<HTMLInputElement>("[data-browser-notes]");
if (notes) {
  const hint = document.querySelector<HTMLElement>("[data-browser-notes-hint]");
  notes.checked = notesAreOn();
  if (!("Notification" in window)) {
    notes.disabled = true;
    if (hint) hint.textContent = "This browser does not support notifications here, or only over HTTPS.";
  }
  notes.addEventListener("change", async () => {
    if (!notes.checked) {
      stopNotes();
      return;
    }
    notes.checked = await allowNotes();
    if (!notes.checked && hint) hint.textContent = "Notifications are blocked. Allow them in the browser's site settings.";
  });
}
