// The command palette: Ctrl-K or Cmd-K, words, arrows, Enter. What is found comes from the server; the page /find/ shows
// the same without a script. A combobox by the book: the focus stays in the field, `aria-activedescendant` says where one is.
import { htmx } from "./htmx";

const dialog = document.querySelector<HTMLDialogElement>("#palette");
const words = document.querySelector<HTMLInputElement>("#palette-words");
const list = document.querySelector<HTMLElement>("#palette-list");
const said = document.querySelector<HTMLElement>("#palette-said");

if (dialog && words && list && said) {
  const options = () => [...list.querySelectorAll<HTMLAnchorElement>("[role=option]")];
  const chosen = () => options().findIndex((option) => option.getAttribute("aria-selected") === "true");

  const choose = (index: number) => {
    const all = options();
    all.forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    const option = all[index];
    words.removeAttribute("aria-activedescendant");
    if (!option) return;
    words.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const move = (by: number) => {
    const count = options().length;
    if (count) choose((chosen() + by + count) % count);
  };
  const go = (elsewhere: boolean) => {
    const option = options()[chosen()];
    if (!option) return;
    if (elsewhere) window.open(option.href, "_blank", "noopener");
    else location.assign(option.href);
  };
  const open = () => {
    if (dialog.open) return;
    dialog.showModal();
    words.select();
    htmx.trigger(words, "opened", {});
  };

  list.addEventListener("htmx:afterSwap", () => {
    // A fieldful of links that Tab would walk through: the arrows do.
    for (const option of options()) option.tabIndex = -1;
    choose(0);
    const count = options().length;
    said.textContent = count === 1 ? "1 found" : `${count} found`;
  });
  words.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter") go(event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });
  if (/Mac|iPhone|iPad/.test(navigator.userAgent)) {
    for (const key of document.querySelectorAll(".find-opener kbd")) key.textContent = "⌘ K";
  }
  for (const opener of document.querySelectorAll<HTMLElement>("[data-opens-palette]")) {
    opener.addEventListener("click", (event) => {
      if (event instanceof MouseEvent && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
      event.preventDefault();
      open();
    });
  }
}
