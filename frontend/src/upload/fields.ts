// What is typed about an upload: its name, words about it, its namespace, and whether an archive is unpacked.
import { byId, el, fill } from "../dom";
import type { Remembered } from "./memory";

export type Typed = Pick<Remembered, "name" | "description" | "note" | "unpack">;

export class Fields {
  /** Absent where a version is uploaded: it has its dataset's name. */
  private readonly name = document.getElementById("name") as HTMLInputElement | null;
  private readonly namespaceField = byId("namespace") as HTMLInputElement;
  private readonly unpack = byId("unpack") as HTMLInputElement;
  private isNameTyped = false;

  constructor(changed: { name(): void; namespace(): void }) {
    this.name?.addEventListener("input", () => {
      this.isNameTyped = true;
      this.blameName("");
    });
    this.name?.addEventListener("change", changed.name);
    this.namespaceField.addEventListener("change", changed.namespace);
  }

  get namespace(): string {
    return this.namespaceField.value;
  }

  get asksForName(): boolean {
    return this.name !== null;
  }

  typed(): Typed {
    const text = (id: string) => (document.getElementById(id) as HTMLInputElement | null)?.value ?? "";
    return { name: text("name").trim(), description: text("description"), note: text("note"), unpack: this.unpack.checked };
  }

  /** As it was typed before a tab was closed. */
  restore(typed: Typed | null, namespace: string): void {
    this.namespaceField.value = namespace;
    if (!typed) return;
    for (const id of ["name", "description", "note"] as const) {
      const input = document.getElementById(id) as HTMLInputElement | null;
      if (input) input.value = typed[id];
    }
    this.unpack.checked = typed.unpack;
    this.isNameTyped = true;
  }

  /** A name made of what was chosen, as long as none was typed. */
  suggestName(name: string): void {
    if (this.name && !this.isNameTyped) this.name.value = name.slice(0, this.name.maxLength);
  }

  /** What is wrong with the name; empty: nothing. */
  blameName(text: string, link?: { href: string; words: string }): void {
    this.name?.classList.toggle("is-invalid", text !== "");
    if (text) this.name?.setAttribute("aria-invalid", "true");
    else this.name?.removeAttribute("aria-invalid");
    const fault = document.getElementById("name-fault");
    if (fault) fill(fault, text, link && el("a", { href: link.href }, link.words));
  }

  focusName(): void {
    this.name?.focus();
  }

  /** `isSending`: nothing can be changed; `isBegun`: the bytes are reserved in a namespace already. */
  lock(isSending: boolean, isBegun: boolean): void {
    for (const input of [this.name, this.unpack]) if (input) input.disabled = isSending;
    this.namespaceField.disabled = isSending || isBegun;
  }

  offerUnpacking(isOffered: boolean): void {
    byId("unpack-field").hidden = !isOffered;
  }
}
