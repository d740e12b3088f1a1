// Where files are dropped, and the buttons that choose them.
import { byId } from "../dom";
import type { Picked } from "./choice";
import { dropped, picked } from "./drop";

export interface Hearer {
  isOff(): boolean;
  reading(): void;
  add(files: Picked[]): void;
  failed(): void;
}

const PICKERS = ["pick-files", "pick-folder"];

export function listenForFiles(hearer: Hearer): void {
  listenForDrops(byId("drop"), hearer);
  for (const id of PICKERS) {
    const input = byId(id) as HTMLInputElement;
    input.addEventListener("change", () => {
      const files = input.files ? picked(input.files) : [];
      input.value = ""; // the same files may be chosen again
      hearer.add(files);
    });
  }
}

export function lockPickers(isOff: boolean): void {
  byId("drop").classList.toggle("drop-off", isOff);
  for (const id of PICKERS) (byId(id) as HTMLInputElement).disabled = isOff;
}

function listenForDrops(zone: HTMLElement, hearer: Hearer): void {
  const mark = (isHere: boolean) => zone.classList.toggle("drop-here", isHere && !hearer.isOff());
  zone.addEventListener("dragover", () => mark(true));
  zone.addEventListener("dragleave", (event) => {
    if (!zone.contains(event.relatedTarget as Node | null)) mark(false);
  });
  zone.addEventListener("drop", (event) => {
    mark(false);
    if (!event.dataTransfer || hearer.isOff()) return;
    hearer.reading();
    dropped(event.dataTransfer).then(
      (files) => hearer.add(files),
      () => hearer.failed(),
    );
  });
  // A file dropped beside the zone would replace the page, and an upload with it.
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());
}
