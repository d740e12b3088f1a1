// The launch form's buttons that choose a folder or files: they become a version of code, which is then chosen.
import { Refusal } from "./api";
import { el, fill } from "./dom";
import { toast } from "./toast";

const pickersIn = (fields: HTMLElement) => fields.querySelectorAll<HTMLInputElement>("#launch-folder, #launch-files");
let isSending = false;

addEventListener("beforeunload", (event) => {
  if (isSending) event.preventDefault();
});

/** What a script needs is shown once there is one. For each time that `fields` are replaced; `namespace` says where the
    code is to be. */
export function showFolder(fields: HTMLElement, namespace: () => string): void {
  const place = fields.querySelector<HTMLElement>(".launch-folder");
  if (place) place.hidden = false;
  // Each is listened to by itself: while the browser's dialog is open, the fields may be replaced, and it with them.
  for (const input of pickersIn(fields)) input.onchange = () => chosen(fields, input, namespace());
  lock(fields);
}

function chosen(fields: HTMLElement, input: HTMLInputElement, namespace: string): void {
  if (!input.files?.length || isSending) return;
  const files = [...input.files];
  input.value = ""; // the same folder may be chosen again
  void send(fields, files, namespace);
}

async function send(fields: HTMLElement, files: File[], namespace: string): Promise<void> {
  isSending = true;
  lock(fields);
  try {
    const { sentAsCode } = await import("./upload/as_code"); // few launches need it
    const portal = fields.querySelector<HTMLElement>(".launch-folder")?.dataset.portal ?? "";
    const made = await sentAsCode(files, namespace, portal, (words) => say(fields, words));
    isSending = false;
    say(fields, "");
    toast(`Uploaded ${made.name}, version ${made.number}.`, "success");
    choose(fields, made.id, `${made.name}, version ${made.number} (newest)`);
  } catch (error) {
    say(fields, ...wordsOf(error));
  } finally {
    isSending = false;
    lock(fields);
  }
}

/** As if the reader had chosen it: the portal then proposes what is in it. */
function choose(fields: HTMLElement, id: string, title: string): void {
  const select = fields.querySelector<HTMLSelectElement>("select[name=code]");
  if (!select) return;
  select.append(el("option", { value: id }, title));
  select.value = id;
  select.dispatchEvent(new Event("input", { bubbles: true }));
}

function wordsOf(error: unknown): [string, string] {
  if (error instanceof Refusal) {
    const [first] = error.errors;
    return [first ? `${error.message} ${first.message}` : error.message, first?.remedy || (error.status ? error.remedy : "Choose it again once the portal is back.")];
  }
  return ["The files could not be read.", "Choose them again."];
}

function say(fields: HTMLElement, words: string, remedy?: string): void {
  const place = fields.querySelector<HTMLElement>("#launch-folder-said");
  if (!place) return;
  place.classList.toggle("text-danger", remedy !== undefined);
  fill(place, remedy ? `${words} ${remedy}` : words);
}

function lock(fields: HTMLElement): void {
  for (const input of pickersIn(fields)) input.disabled = isSending;
}
