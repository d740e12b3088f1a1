// The launch form, alive: steppers, the picture of the cluster, the job file in colours. What the form means, whether it
// fits and what the file says is decided by the portal: it answers in parts (see the templates), and nothing is decided here.
import { drawCluster } from "../cluster_picture";
import { byId } from "../dom";
import { showFolder } from "../launch_folder";
import { toast } from "../toast";
import { colourYaml } from "../yaml_colours";

const MOST_TFJOB = 256 << 10;
const form = byId("launch") as HTMLFormElement;
const fields = byId("launch-fields");
const file = byId("launch-yaml") as HTMLTextAreaElement;
const colours = byId("launch-yaml-colours");

// Counts and their picture.

function counts(): Map<string, number> {
  const found = new Map<string, number>();
  for (const input of fields.querySelectorAll<HTMLInputElement>("input[data-role]")) {
    const count = input.type === "checkbox" && !input.checked ? 0 : Math.floor(Number(input.value));
    if (count > 0) found.set(input.dataset.role ?? "", count);
  }
  return found;
}

function draw(): void {
  const strategy = fields.querySelector<HTMLInputElement>("input[name=strategy]:checked")?.value ?? "";
  byId("launch-picture").replaceChildren(drawCluster(strategy, counts()));
  const there = counts();
  for (const part of fields.querySelectorAll<HTMLElement>("[data-of-role]")) part.hidden = !there.has(part.dataset.ofRole ?? "");
}

fields.addEventListener("click", (event) => {
  const button = (event.target as Element).closest<HTMLButtonElement>("[data-step]");
  const input = button && document.getElementById(button.dataset.for ?? "");
  if (!(input instanceof HTMLInputElement)) return;
  const next = Math.max(Number(input.min), Math.min(Number(input.max), Math.floor(Number(input.value) || 0) + Number(button?.dataset.step)));
  if (String(next) === input.value) return;
  input.value = String(next);
  input.dispatchEvent(new Event("input", { bubbles: true }));
});
fields.addEventListener("input", draw);

// A field that is required and empty is not called wrong before the reader was there.

const touched = form.elements.namedItem("touched") as HTMLInputElement;
touched.disabled = false;
for (const kind of ["input", "focusout"]) {
  fields.addEventListener(kind, (event) => {
    const { name, value, required } = event.target as HTMLInputElement;
    if (!required || touched.value.split(" ").includes(name)) return;
    touched.value = `${touched.value} ${name}`;
    if (kind === "focusout" && !value) fields.dispatchEvent(new Event("input")); // asks for the preview
  });
}

// The answer of a check may move a button between the press and the release, and then the browser sees no click.

let pressed: { button: HTMLElement; at: PointerEvent } | undefined;
form.addEventListener("pointerdown", (event) => {
  const button = (event.target as Element).closest<HTMLElement>("button, summary");
  pressed = button && event.button === 0 ? { button, at: event } : undefined;
});
addEventListener("pointercancel", () => (pressed = undefined));
addEventListener("pointerup", (event) => {
  if (!pressed) return;
  const { button, at } = pressed;
  pressed = undefined;
  const moved = Math.hypot(event.clientX - at.clientX, event.clientY - at.clientY);
  if (moved < 4 && button.isConnected && !button.contains(event.target as Node)) button.click();
});

// The job file.

function showFile(): void {
  colours.replaceChildren(...colourYaml(`${file.value}\n`));
  colours.scrollTop = file.scrollTop;
  colours.scrollLeft = file.scrollLeft;
}

file.addEventListener("input", showFile);
file.addEventListener("scroll", () => {
  colours.scrollTop = file.scrollTop;
  colours.scrollLeft = file.scrollLeft;
});

const copy = byId("launch-copy-file") as HTMLButtonElement;
copy.hidden = !navigator.clipboard;
copy.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(file.value);
    toast("The job file is copied.", "success");
  } catch {
    file.select();
    toast("The browser did not let this page copy. The file is marked: copy it.", "warning");
  }
});

// A TFJob from a file is put where one is pasted.

const source = byId("launch-tfjob-file") as HTMLInputElement;
byId("launch-tfjob-from-file").hidden = false;
source.addEventListener("change", async () => {
  const chosen = source.files?.[0];
  if (!chosen) return;
  if (chosen.size > MOST_TFJOB) return toast(`${chosen.name} is larger than ${MOST_TFJOB >> 10} KiB: choose the file of the TFJob alone.`, "error");
  (byId("launch-tfjob") as HTMLTextAreaElement).value = await chosen.text();
});

// What the portal answers.

const sent = new WeakMap<XMLHttpRequest, Map<string, string[]>>();
let since = new Map<string, string[]>();
let again: Field[] = [];
let open: string[] = [];
let held: { id: string; start: number | null; end: number | null } | undefined;

interface Asked {
  target: Element;
  xhr: XMLHttpRequest;
}
const isOfFields = (event: Event): event is CustomEvent<Asked> => (event as CustomEvent<Asked>).detail.target === fields;
/** An answer has parts for other places, too, and htmx says of each that it is there. */
const areFields = (event: Event) => isOfFields(event) && event.target === fields;
const isShown = (event: Event) => (event as CustomEvent<{ shouldSwap: boolean }>).detail.shouldSwap;

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
const named = (name?: string) =>
  [...fields.querySelectorAll<Field>("input[name], select[name], textarea[name]")].filter((field) => name === undefined || field.name === name);

/** What the fields of each name hold. A box that is not ticked holds nothing. */
function written(): Map<string, string[]> {
  const data = new FormData(form);
  return new Map(named().map(({ name }) => [name, data.getAll(name).map(String)]));
}

// The fields are replaced by those that the portal answers. What was typed or chosen meanwhile is so again.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (isOfFields(event)) sent.set(event.detail.xhr, written());
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isOfFields(event)) return;
  const asked = sent.get(event.detail.xhr);
  since = new Map([...written()].filter(([name, values]) => asked?.get(name)?.join() !== values.join()));
  open = [...fields.querySelectorAll<HTMLDetailsElement>("details[open]")].map((section) => section.id);
  held = focused();
  // What is still being asked about the old fields must not be said beside the new ones.
  const asks = byId("launch-preview");
  if (isShown(event)) asks.dispatchEvent(new CustomEvent("htmx:abort", { bubbles: true, detail: { elt: asks } }));
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (!areFields(event)) return;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  again = [...since].flatMap(([name, values]) => named(name).filter((field) => writeAgain(field, values)));
  if (held) focusAgain(held);
  liven();
  form.dispatchEvent(new Event("input", { bubbles: true })); // a button of the form, or its job file, has changed it
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (!areFields(event)) return;
  // Not before: only now does htmx listen to the new fields.
  for (const field of again) field.dispatchEvent(new Event("input", { bubbles: true }));
  again = [];
});
document.addEventListener("htmx:oobAfterSwap", (event) => {
  const { target } = (event as CustomEvent<{ target: Element }>).detail;
  if (target.id !== "launch-yaml-fresh") return;
  const fresh = byId("launch-yaml-fresh").textContent ?? "";
  if (document.activeElement === file || fresh === file.value) return; // never while the user edits it
  file.value = fresh;
  showFile();
});

/** False where that changes nothing, or the new field does not offer it. */
function writeAgain(field: Field, values: string[]): boolean {
  const [value = ""] = values;
  if (field.type === "radio" || field.type === "checkbox") {
    const input = field as HTMLInputElement;
    const isTicked = values.includes(input.value);
    if (input.checked === isTicked || (input.type === "radio" && !isTicked)) return false;
    input.checked = isTicked;
    return true;
  }
  if (field.value === value || (field instanceof HTMLSelectElement && ![...field.options].some((one) => one.value === value))) return false;
  field.value = value;
  return true;
}

/** The field that has the keyboard, and what of its text is marked. */
function focused(): typeof held {
  const field = document.activeElement;
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) || !fields.contains(field)) return undefined;
  return { id: field.id, start: field.selectionStart, end: field.selectionEnd };
}

/** htmx has tried while the field's section was still closed, where nothing can have the keyboard. */
function focusAgain({ id, start, end }: NonNullable<typeof held>): void {
  const field = document.getElementById(id);
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement)) return;
  field.focus({ preventScroll: true });
  if (start !== null) field.setSelectionRange(start, end);
}

function liven(): void {
  for (const button of fields.querySelectorAll<HTMLButtonElement>("[data-step]")) button.hidden = false;
  showFolder(fields, () => (form.elements.namedItem("namespace") as HTMLSelectElement | null)?.value ?? "");
  draw();
}

// A page that comes back from the browser's memory is a new form: what it launched before is not launched "again".
addEventListener("pageshow", (event) => {
  const key = form.elements.namedItem("form") as HTMLInputElement;
  if (event.persisted) key.value = crypto.getRandomValues(new Uint32Array(4)).join("-");
});

(document.getElementById("launch-trouble") ?? document.getElementById("launch-never"))?.focus();
colours.hidden = false;
file.classList.add("is-coloured");
showFile();
liven();
