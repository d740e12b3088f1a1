// A switch of the log viewer whose state the browser remembers.

/** Make `button` a switch and tell its state at once; `initially` holds until the reader has chosen. */
export function keptSwitch(button: HTMLElement, name: string, initially: boolean, act: (on: boolean) => void): void {
  const key = `yardmaster-log-${name}`;
  const show = (on: boolean) => {
    button.setAttribute("aria-pressed", String(on));
    act(on);
  };
  let on = initially;
  try {
    on = (localStorage.getItem(key) ?? String(initially)) === "true";
  } catch {
    // Without storage it is as it is at first.
  }
  button.addEventListener("click", () => {
    on = !on;
    show(on);
    try {
      localStorage.setItem(key, String(on));
    } catch {
      // Then the choice holds for this page.
    }
  });
  show(on);
}
