// Which of the chosen files are meant, and which path each gets. Pure: no page, no portal.

/** A file as it was dropped or picked, with its path from what was dropped. */
export interface Picked {
  path: string;
  file: File;
}

export interface Choice {
  files: Picked[];
  /** Folders and files that are never meant, by name, with how often each was met. */
  leftOut: Map<string, number>;
}

// The same as the command line leaves out.
const NEVER_MEANT = new Set([".git", "__pycache__", ".venv", "node_modules", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db"]);

export function isNeverMeant(name: string): boolean {
  return NEVER_MEANT.has(name);
}

/** The files to send: without caches, from the top of the one folder that holds them all, one per path, in order. */
export function choose(picked: Iterable<Picked>): Choice {
  const leftOut = new Map<string, number>();
  const byPath = new Map<string, Picked>();
  for (const one of picked) {
    const name = one.path.split("/").find(isNeverMeant);
    if (name) leftOut.set(name, (leftOut.get(name) ?? 0) + 1);
    else byPath.set(one.path, one); // chosen again: the newer one
  }
  const top = commonTop([...byPath.keys()]);
  const files = [...byPath.values()].map((one) => ({ ...one, path: one.path.slice(top.length) }));
  files.sort((a, b) => byCharacters(a.path, b.path));
  return { files, leftOut };
}

/** The order of the portal, which is that of the UTF-8 bytes; JavaScript compares halves of characters. */
export function byCharacters(a: string, b: string): number {
  if (a === b) return 0;
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return rank(a, at) - rank(b, at);
}

/** Halves of characters beyond the first 65,536 count above all others. */
function rank(text: string, at: number): number {
  const unit = at < text.length ? text.charCodeAt(at) : -1;
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** `shards/` where every path lies in that one folder, else nothing. */
export function commonTop(paths: string[]): string {
  const first = paths[0]?.split("/") ?? [];
  const top = first.length > 1 ? `${first[0]}/` : "";
  return top && paths.every((path) => path.startsWith(top)) ? top : "";
}

/** A name for it, made of what was chosen: the folder, or the only file without its ending. */
export function nameFor(picked: Picked[]): string {
  const top = commonTop(picked.map((one) => one.path));
  if (top) return top.slice(0, -1);
  const only = picked.length === 1 ? picked[0]?.path ?? "" : "";
  return only.replace(/\.[A-Za-z0-9]{1,8}$/, "");
}
