export type Choice = "light" | "dark" | "auto";

const KEY = "yardmaster-theme";

/** The reader's choice; `auto` where none was made or the browser keeps nothing. */
export function chosen(): Choice {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "auto";
  } catch {
    return "auto";
  }
}

export function choose(choice: Choice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // Without storage the choice holds for this page.
  }
  apply(choice);
}

export function apply(choice: Choice): void {
  const dark = choice === "dark" || (choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.bsTheme = dark ? "dark" : "light";
}
