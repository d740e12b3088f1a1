// Short notes in the corner: the result of an action. Those of the server are in the page already.

const STAYS = 6_000;

/** Say something for a few seconds; errors stay until they are closed. The same words are not shown twice. */
export function toast(text: string, kind: "success" | "info" | "warning" | "error" = "info"): void {
  const place = document.getElementById("toasts");
  if (!place) return;
  for (const one of place.children) if ((one as HTMLElement).dataset.text === text) return;
  const note = document.createElement("div");
  note.className = "toast-note";
  note.dataset.kind = kind;
  note.textContent = text;
  place.append(note);
  closable(note);
}

/** Give a note its close button, and let it go by itself where nothing is wrong. */
export function closable(note: HTMLElement): void {
  note.dataset.text = note.textContent ?? "";
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn-close";
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => note.remove());
  note.append(close);
  if (!/error|warning/.test(note.dataset.kind ?? "")) setTimeout(() => note.remove(), STAYS);
}
