// What every page has: htmx, times that tick, notes, menus that close like menus, copying, light and dark.
import "./away";
import "./forms";
import "./htmx";
import "./live";
import "./palette";
import { notesAreOn } from "./browser_notes_choice";
import { choose, chosen, type Choice } from "./theme_choice";
import { keepTicking } from "./times";
import { closable, toast } from "./toast";
import "./waiting";

const NEXT: Record<Choice, Choice> = { auto: "light", light: "dark", dark: "auto" };
const SAYS: Record<Choice, string> = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

const toggle = document.querySelector<HTMLButtonElement>("[data-theme-toggle]");
if (toggle) {
  const show = () => {
    const choice = chosen();
    toggle.dataset.choice = choice;
    toggle.setAttribute("aria-label", `${SAYS[choice]}. Change.`);
    toggle.title = SAYS[choice];
  };
  toggle.addEventListener("click", () => {
    choose(NEXT[chosen()]);
    show();
  });
  document.addEventListener("theme", show); // chosen elsewhere on the page
  toggle.hidden = false;
  show();
}

const menus = () => document.querySelectorAll<HTMLDetailsElement>("details[data-menu][open]");
document.addEventListener("click", (event) => {
  for (const menu of menus()) if (!menu.contains(event.target as Node)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus()) {
    menu.open = false;
    menu.querySelector("summary")?.focus();
  }
});

/** A menu hangs below the end of its button. Moved to the right where it would begin outside of the window. */
const MARGIN = 8;
document.addEventListener(
  "toggle",
  (event) => {
    const menu = event.target as HTMLElement;
    const panel = menu.matches("details[data-menu][open]") ? menu.querySelector<HTMLElement>(".dropdown-menu") : null;
    if (!panel) return;
    panel.style.translate = "";
    panel.style.translate = `${Math.max(0, MARGIN - panel.getBoundingClientRect().left)}px`;
  },
  true, // it does not bubble
);

/** Buttons to copy: `data-copy` holds the text, or is empty beside a `<code>`. Also those that come in later. */
function showCopyButtons(root: ParentNode): void {
  if (!navigator.clipboard) return; // only over https or on this machine
  for (const button of root.querySelectorAll<HTMLButtonElement>("[data-copy][hidden]")) button.hidden = false;
}

const copied = new WeakMap<HTMLElement, number>();
document.addEventListener("click", async (event) => {
  const button = (event.target as Element).closest<HTMLButtonElement>("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy || button.parentElement?.querySelector("code")?.textContent || "";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    toast("The browser blocked copying. Select the text and copy it.", "warning");
    return;
  }
  clearTimeout(copied.get(button));
  const label = (button.dataset.label ??= button.textContent ?? ""); // it may say "Copied" already
  button.textContent = "Copied";
  copied.set(button, window.setTimeout(() => (button.textContent = label), 2_000));
});

for (const button of document.querySelectorAll<HTMLButtonElement>("[data-back]")) {
  button.hidden = history.length < 2;
  button.addEventListener("click", () => history.back());
}

showCopyButtons(document);
document.addEventListener("htmx:load", (event) => showCopyButtons(event.target as HTMLElement));
for (const note of document.querySelectorAll<HTMLElement>(".toast-note")) closable(note);
document.addEventListener("toast", (event) => {
  const { text, kind } = (event as CustomEvent).detail as { text: string; kind?: "success" | "error" };
  toast(text, kind);
});
keepTicking();

const { reader } = document.documentElement.dataset;
if (reader && notesAreOn()) void import("./browser_notes").then(({ showNotes }) => showNotes(reader));
