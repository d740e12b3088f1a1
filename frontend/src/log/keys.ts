// The keys of the log viewer, and the list of them. On a page of its own they work anywhere; inside another page only
// while the log has the focus.
import { el } from "../dom";

export interface Actions {
  down: () => void;
  up: () => void;
  start: () => void;
  end: () => void;
  search: () => void;
  next: () => void;
  previous: () => void;
  firstError: () => void;
  leave: () => void;
}

const KEYS: Record<string, [keyof Actions, string]> = {
  j: ["down", "one line down"],
  k: ["up", "one line up"],
  g: ["start", "go to the first line"],
  G: ["end", "go to the latest line and follow"],
  "/": ["search", "search the full log"],
  n: ["next", "next match"],
  N: ["previous", "previous match"],
  e: ["firstError", "go to the first error"],
  Escape: ["leave", "clear the selection"],
};

export function listenForKeys(root: HTMLElement, isPage: boolean, actions: Actions): void {
  const button = root.querySelector<HTMLButtonElement>("[data-keys]");
  const list = el("dl", { class: "log-key-list", id: "log-key-list" });
  for (const [key, [, words]] of Object.entries(KEYS)) list.append(el("dt", {}, el("kbd", {}, key)), el("dd", {}, words));
  list.hidden = true;
  button?.after(list);
  button?.setAttribute("aria-controls", "log-key-list");
  const help = (shows: boolean) => {
    list.hidden = !shows;
    button?.setAttribute("aria-expanded", String(shows));
  };
  button?.addEventListener("click", () => help(list.hidden === true));

  (isPage ? document : root).addEventListener("keydown", (event) => {
    const pressed = event as KeyboardEvent;
    const target = pressed.target as HTMLElement;
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || pressed.defaultPrevented) return;
    const isTyping = target.matches("input, select, textarea, [contenteditable]");
    if (isTyping && pressed.key !== "Escape") return;
    if (pressed.key === "Escape" && !list.hidden) return help(false);
    if (pressed.key === "?") return help(list.hidden === true);
    const [action] = KEYS[pressed.key] ?? [];
    if (!action) return;
    pressed.preventDefault();
    actions[action]();
  });
}
