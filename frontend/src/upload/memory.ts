// What this browser remembers of an open upload, so that a closed tab costs nothing: the portal knows the files and which
// parts it has; here is what was typed, and when each file was last changed.

export interface Remembered {
  item: string;
  name: string;
  description: string;
  note: string;
  unpack: boolean;
  /** When each file was last changed, by its index in the upload; of very many nothing is kept. */
  times: number[];
  /** How many files the upload is to have: those beyond the first are announced one request after the other. */
  count: number;
  at: number;
}

const PREFIX = "yardmaster-upload-";
const KEPT = 3 * 86_400_000;

export function remember(id: string, what: Remembered): void {
  try {
    localStorage.setItem(PREFIX + id, JSON.stringify(what));
  } catch {
    // A browser that keeps nothing, or no more: the upload still resumes by names and sizes.
  }
}

export function recall(id: string): Remembered | null {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + id) ?? "null") as Remembered | null;
  } catch {
    return null;
  }
}

export function forget(id: string): void {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // Nothing is kept here.
  }
}

/** Drop what belongs to uploads that the portal has forgotten by now. */
export function forgetOld(now: number): void {
  try {
    for (const key of Object.keys(localStorage)) {
      if (!key.startsWith(PREFIX)) continue;
      const kept = recall(key.slice(PREFIX.length));
      if (!kept || now - kept.at > KEPT) localStorage.removeItem(key);
    }
  } catch {
    // Nothing is kept here.
  }
}
