// Files that are dropped or picked, with those in folders.
import { isNeverMeant, type Picked } from "./choice";

/** Everything below what was dropped. Folders that are never meant are not even looked into: `.git` may hold thousands. */
export async function dropped(transfer: DataTransfer): Promise<Picked[]> {
  // Entries must be taken before the first await: the browser then empties the list.
  const entries = [...transfer.items].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry());
  if (entries.every((entry) => entry === null)) return [...transfer.files].map((file) => ({ path: file.name, file }));
  const found: Picked[] = [];
  const waiting = entries.filter((entry) => entry !== null);
  for (let entry = waiting.pop(); entry; entry = waiting.pop()) {
    if (entry.isFile) found.push(await fileOf(entry as FileSystemFileEntry));
    else if (!isNeverMeant(entry.name)) for (const child of await childrenOf(entry as FileSystemDirectoryEntry)) waiting.push(child);
  }
  return found;
}

export function picked(list: Iterable<File>): Picked[] {
  return [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

function fileOf(entry: FileSystemFileEntry): Promise<Picked> {
  const path = entry.fullPath.replace(/^\//, "");
  return new Promise((done, fail) => entry.file((file) => done({ path, file }), fail));
}

async function childrenOf(entry: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = entry.createReader();
  const children: FileSystemEntry[] = [];
  for (;;) {
    // A reader gives a hundred at a time, and nothing when all were given.
    const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return children;
    children.push(...some);
  }
}
