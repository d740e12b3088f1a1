// Whether this browser shows a note when a job ends: the reader's choice, and the browser's permission.

const KEY = "yardmaster-browser-notes";

export function notesAreOn(): boolean {
  try {
    return localStorage.getItem(KEY) === "on" && "Notification" in window && Notification.permission === "granted";
  } catch {
    return false;
  }
}

/** Ask the browser. True: notes are shown from the next page on. */
export async function allowNotes(): Promise<boolean> {
  if ((await Notification.requestPermission()) !== "granted") return false;
  try {
    localStorage.setItem(KEY, "on");
  } catch {
    return false;
  }
  return true;
}

export function stopNotes(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // It kept nothing, so there is nothing to forget.
  }
}
