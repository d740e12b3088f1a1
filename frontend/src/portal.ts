// What every page has: the switch between light and dark, and menus that close like menus.
import { choose, chosen, type Choice } from "./theme_choice";

const NEXT: Record<Choice, Choice> = { auto: "light", light: "dark", dark: "auto" };
const SAYS: Record<Choice, string> = { auto: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };

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
  toggle.hidden = false;
  show();
}

for (const menu of document.querySelectorAll<HTMLDetailsElement>("details[data-menu]")) {
  document.addEventListener("click", (event) => {
    if (menu.open && !menu.contains(event.target as Node)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
}

for (const button of document.querySelectorAll<HTMLButtonElement>("[data-copy]")) {
  if (!navigator.clipboard) continue; // only over https or on this machine
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy ?? "");
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}
