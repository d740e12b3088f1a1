// What is left to send of an upload, and whether files chosen again are the same. Pure.
import type { Picked } from "./choice";

/** An upload's file as the portal knows it. */
export interface ServerFile {
  index: number;
  path: string;
  size: number;
  parts: number;
  done: number[];
}

export interface PartToSend {
  file: ServerFile;
  number: number;
}

/** Which bytes a part has: from, to (exclusive). Parts count from 1. */
export function rangeOf(file: ServerFile, part: number, partSize: number): [number, number] {
  return [(part - 1) * partSize, Math.min(part * partSize, file.size)];
}

/** Numbers of the parts that the portal lacks, in order. */
export function lackingOf(file: ServerFile): number[] {
  const done = new Set(file.done);
  return Array.from({ length: file.parts }, (_, at) => at + 1).filter((part) => !done.has(part));
}

/** Bytes of the parts that have arrived. */
export function arrivedOf(file: ServerFile, partSize: number): number {
  return file.done.reduce((sum, part) => {
    const [from, to] = rangeOf(file, part, partSize);
    return sum + Math.max(0, to - from);
  }, 0);
}

export interface Match {
  sources: Map<number, File>;
  /** Paths of the upload that were not chosen, of which the portal lacks parts. */
  missing: string[];
  /** Paths that are there, but with another size or a later change than when the upload began. */
  changed: string[];
}

/** Which chosen file is which file of the upload. `times` are the files' changes by index, as far as remembered. */
export function match(files: ServerFile[], chosen: Picked[], times: number[]): Match {
  const byPath = new Map(chosen.map((one) => [one.path, one.file]));
  const found: Match = { sources: new Map(), missing: [], changed: [] };
  for (const file of files) {
    const source = byPath.get(file.path);
    const time = times[file.index];
    if (!source) {
      if (lackingOf(file).length) found.missing.push(file.path);
    } else if (source.size !== file.size || (time !== undefined && time !== source.lastModified)) {
      found.changed.push(file.path);
    } else {
      found.sources.set(file.index, source);
    }
  }
  return found;
}

/** How long to wait before the next try, in milliseconds: longer each time, never the same for all. */
export function restAfter(failures: number, chance: number): number {
  return Math.min(30_000, 1_000 * 2 ** (failures - 1)) * (0.5 + chance / 2);
}

/** Bytes per second over the last moments; 0 while too little is known. */
export class Speed {
  private readonly marks: [number, number][] = [];

  note(now: number, bytes: number): void {
    this.marks.push([now, bytes]);
    while (this.marks.length > 2 && now - (this.marks[0]?.[0] ?? now) > 10_000) this.marks.shift();
  }

  perSecond(): number {
    const [first, last] = [this.marks[0], this.marks[this.marks.length - 1]];
    if (!first || !last || last[0] - first[0] < 1_000) return 0;
    return Math.max(0, ((last[1] - first[1]) * 1_000) / (last[0] - first[0]));
  }

  forget(): void {
    this.marks.length = 0;
  }
}
