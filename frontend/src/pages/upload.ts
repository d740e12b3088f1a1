// The page that uploads datasets and code. Choosing, what it will cost, sending, and making the version of what was sent.
// The parts are sent by `upload/sender`; what is told to the portal is in `upload/portal`.
import { Refusal, post } from "../api";
import { byId, el, fill } from "../dom";
import { choose, nameFor, type Choice, type Picked } from "../upload/choice";
import { dropped, picked } from "../upload/drop";
import { showFiles, type FileRow } from "../upload/file_list";
import { forget, forgetOld, recall, remember } from "../upload/memory";
import { arrivedOf, lackingOf, match, Speed } from "../upload/plan";
import { begin, complete, discard, look, named, storageOf, type OpenUpload, type Storage } from "../upload/portal";
import { showStorage } from "../upload/quota";
import { Sender, Unreadable } from "../upload/sender";
import { bytes, duration } from "../words";

const REDRAW = 250;

const form = document.getElementById("upload") as HTMLFormElement | null;
if (form) start(form);

function start(form: HTMLFormElement): void {
  const { kind = "", api = "", item = "", itemName = "", page = "", portal = "" } = form.dataset;
  const mostFiles = Number(form.dataset.mostFiles);
  const field = (id: string) => document.getElementById(id) as HTMLInputElement | null;
  const name = field("name");
  const namespace = field("namespace") as HTMLInputElement;
  const unpack = field("unpack") as HTMLInputElement;
  const button = (id: string) => byId(id) as HTMLButtonElement;
  const [go, pause, cancel, clear] = [button("start"), button("pause"), button("cancel"), button("clear")];
  const goWords = go.innerHTML;

  let all: Picked[] = [];
  let choice: Choice = { files: [], leftOut: new Map() };
  /** What is under way: begun here, or an earlier one that goes on. */
  let upload: OpenUpload | null = null;
  let times: number[] = [];
  let sender: Sender | null = null;
  let isBusy = false;
  let nameIsOurs = true;
  const faults = new Map<string, string>(); // by path
  const speed = new Speed();
  let storage: Storage = storageShown();

  form.hidden = false;
  forgetOld(Date.now());
  show();

  // --- Choosing ---------------------------------------------------------------------------------------------------

  function add(more: Picked[]): void {
    all = [...all, ...more];
    choice = choose(all);
    faults.clear();
    complain(null);
    if (name && nameIsOurs) name.value = nameFor(all.length ? all : []).slice(0, 100);
    if (choice.files.length > mostFiles) {
      const many = `These are ${choice.files.length.toLocaleString()} files; an upload has at most ${mostFiles.toLocaleString()}.`;
      complain(new Refusal(400, many, "Pack small files into one zip, or into TFRecord shards."));
    }
    show();
  }

  const drop = byId("drop");
  for (const kindOfEvent of ["dragenter", "dragover"]) {
    drop.addEventListener(kindOfEvent, (event) => {
      event.preventDefault();
      drop.classList.toggle("drop-here", !isBusy);
    });
  }
  drop.addEventListener("dragleave", (event) => {
    if (!drop.contains((event as DragEvent).relatedTarget as Node | null)) drop.classList.remove("drop-here");
  });
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("drop-here");
    const { dataTransfer } = event as DragEvent;
    if (!dataTransfer || isBusy) return;
    byId("chosen-words").hidden = false;
    byId("chosen-words").textContent = "Reading the folder …";
    dropped(dataTransfer).then(add, () => complain(new Refusal(0, "What was dropped cannot be read.", "Choose it with the button instead.")));
  });
  // A file dropped beside the zone would replace the page, and an upload with it.
  for (const kindOfEvent of ["dragover", "drop"]) document.addEventListener(kindOfEvent, (event) => event.preventDefault());
  for (const id of ["pick-files", "pick-folder"]) {
    const input = byId(id) as HTMLInputElement;
    input.addEventListener("change", () => {
      const files = picked(input.files ?? new DataTransfer().files);
      input.value = ""; // the same files may be chosen again
      add(files);
    });
  }
  clear.addEventListener("click", () => {
    all = [];
    add([]);
  });

  // --- What is shown ----------------------------------------------------------------------------------------------

  function total(): number {
    return choice.files.reduce((sum, one) => sum + one.file.size, 0);
  }

  function show(): void {
    const lacks = upload?.state === "open" && upload.files.some((file) => lackingOf(file).length);
    const ready = upload ? !lacks || canGoOn() : choice.files.length > 0 && choice.files.length <= mostFiles;
    go.disabled = isBusy || !ready;
    go.hidden = isBusy;
    if (upload && !isBusy) go.textContent = upload.state === "complete" ? `Make the ${item ? "version" : kind}` : "Go on";
    else if (!upload) go.innerHTML = goWords;
    pause.hidden = !sender;
    const paused = sender?.isPaused ?? false;
    fill(byId("pause"), paused ? "Go on" : "Pause");
    cancel.hidden = !upload;
    clear.hidden = isBusy || !all.length;
    for (const input of [name, namespace, unpack, field("pick-files"), field("pick-folder")]) if (input) input.disabled = isBusy;
    if (upload) namespace.disabled = true;
    drop.classList.toggle("drop-off", isBusy);
    byId("unpack-field").hidden = !(choice.files.length === 1 && /\.zip$/i.test(choice.files[0]?.path ?? ""));
    byId("chosen-words").hidden = !all.length && !upload;
    byId("chosen-words").textContent = chosenWords();
    showStorage(storage, upload ? 0 : total());
    draw();
  }

  function chosenWords(): string {
    const words: string[] = [];
    if (upload && !isBusy && upload.state === "open") {
      const there = upload.files.reduce((sum, file) => sum + arrivedOf(file, upload?.part_size ?? 1), 0);
      const size = upload.files.reduce((sum, file) => sum + file.size, 0);
      words.push(`${bytes(there)} of ${bytes(size)} have arrived.`);
      const { missing } = match(upload.files, choice.files, times);
      if (missing.length) words.push(`To go on, choose the same files again: ${missing.length.toLocaleString()} of ${upload.files.length.toLocaleString()} are to be chosen, such as ${missing[0]}.`);
    } else if (choice.files.length) {
      words.push(`${choice.files.length.toLocaleString()} ${choice.files.length === 1 ? "file" : "files"}, ${bytes(total())}.`);
    }
    if (choice.leftOut.size) words.push(`Left out: ${[...choice.leftOut].map(([what, count]) => (count > 1 ? `${what} (${count} files)` : what)).join(", ")}.`);
    return words.join(" ");
  }

  function rows(): FileRow[] {
    const at = (path: string) => faults.get(path) ?? "";
    const current = sender;
    if (!upload) return choice.files.map(({ path, file }) => ({ path, size: file.size, sent: 0, isMoving: false, fault: at(path) }));
    const partSize = upload.part_size;
    return upload.files.map((file) => ({
      path: file.path,
      size: file.size,
      sent: current ? current.sentOf(file) : arrivedOf(file, partSize),
      isMoving: current?.isMoving(file) ?? false,
      fault: at(file.path),
    }));
  }

  function draw(): void {
    const list = rows();
    byId("files").hidden = !list.length;
    showFiles(byId("files"), list, upload !== null);
    byId("progress").hidden = !sender;
    if (!sender || !upload) return;
    const size = upload.files.reduce((sum, file) => sum + file.size, 0);
    const sent = Math.min(size, sender.sent());
    const share = size ? Math.floor((100 * sent) / size) : 100;
    const bar = byId("progress-bar") as HTMLProgressElement;
    bar.max = Math.max(1, size);
    bar.value = size ? sent : 1;
    byId("progress-words").textContent = `${share} % · ${bytes(sent)} of ${bytes(size)}`;
    speed.note(Date.now(), sent);
    const rate = speed.perSecond();
    byId("progress-speed").textContent = sender.isPaused || !rate ? "" : `${bytes(rate)}/s · ${duration(((size - sent) / rate) * 1000)} left`;
    document.title = `${share} % · Upload · Yardmaster`;
    say(noteOf(sender, share));
  }

  function noteOf(sender: Sender, share: number): string {
    if (sender.isPaused) return "Paused. What has arrived is kept for a day.";
    if (sender.waits) return `${sender.waits.why} It is tried again by itself; nothing that has arrived is sent twice.`;
    return `Sending. ${share - (share % 10)} % there. You may close this page and go on later.`;
  }

  function say(text: string): void {
    const note = byId("progress-note");
    if (note.textContent !== text) note.textContent = text; // each change is read aloud
  }

  function complain(refusal: Refusal | null): void {
    const trouble = byId("trouble");
    trouble.hidden = refusal === null;
    if (!refusal) return;
    fill(trouble, el("strong", {}, refusal.message), " ", refusal.remedy);
    trouble.focus();
    trouble.scrollIntoView({ block: "nearest" });
  }

  // --- Name and quota ---------------------------------------------------------------------------------------------

  name?.addEventListener("input", () => {
    nameIsOurs = false;
    blame("");
  });
  name?.addEventListener("change", () => void isNameFree().catch(() => true));
  namespace.addEventListener("change", () => {
    void refreshStorage();
    if (name?.value) void isNameFree().catch(() => true);
  });

  function blame(text: string, link?: HTMLElement): void {
    name?.classList.toggle("is-invalid", text !== "");
    if (text) name?.setAttribute("aria-invalid", "true");
    else name?.removeAttribute("aria-invalid");
    fill(byId("name-fault"), text, link ?? "");
  }

  /** Asked before the first byte is sent: nobody uploads for an hour to learn that a name is taken. */
  async function isNameFree(): Promise<boolean> {
    if (!name) return true;
    const wanted = name.value.trim();
    if (!wanted) {
      blame("Give it a name.");
      return false;
    }
    const taken = await named(api, namespace.value, wanted);
    if (taken) blame(`There is one named ${wanted} already. Choose another name, or `, el("a", { href: `${page}${taken}/upload/` }, "add a version to it"));
    else blame("");
    return !taken;
  }

  async function refreshStorage(): Promise<void> {
    try {
      storage = await storageOf(namespace.value);
      show();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }

  // --- Sending ----------------------------------------------------------------------------------------------------

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!isBusy && !go.disabled) void run();
  });

  async function run(): Promise<void> {
    isBusy = true;
    faults.clear();
    complain(null);
    show();
    try {
      if (!(await isNameFree())) {
        name?.focus();
        return;
      }
      upload ??= await beginNow();
      if (upload.state === "open") await sendAll(upload);
      if (upload.state !== "complete") await completeNow(upload);
      await makeIt(upload.id);
    } catch (error) {
      await explain(error);
    } finally {
      isBusy = false;
      sender = null;
      show();
    }
  }

  async function beginNow(): Promise<OpenUpload> {
    const begun = await begin(kind, namespace.value, choice.files);
    times = begun.files.map((file) => choice.files[file.index]?.file.lastModified ?? 0);
    remember(begun.id, { item, name: name?.value ?? "", description: field("description")?.value ?? "", note: field("note")?.value ?? "", unpack: unpack.checked, times, at: Date.now() });
    return begun;
  }

  async function sendAll(open: OpenUpload): Promise<void> {
    const { sources } = match(open.files, choice.files, times);
    speed.forget();
    sender = new Sender(open, sources, (url) => (url.startsWith(portal) ? url.slice(portal.length) : url));
    show();
    const timer = setInterval(draw, REDRAW);
    try {
      await sender.run();
    } finally {
      clearInterval(timer);
      draw();
    }
  }

  async function completeNow(open: OpenUpload): Promise<void> {
    pause.hidden = cancel.hidden = true;
    say("Everything has arrived. The portal puts it together and checks it …");
    const isZip = !byId("unpack-field").hidden || /\.zip$/i.test(open.files[0]?.path ?? "");
    await complete(open.id, open.files.length === 1 && isZip && unpack.checked, (checked, of) => {
      if (checked) say(`Everything has arrived. Checked: ${bytes(checked)} of ${bytes(of)} …`);
    });
    open.state = "complete";
  }

  async function makeIt(id: string): Promise<void> {
    say(item ? "Making the version …" : `Making the ${kind} …`);
    let made = item;
    if (item) await post(`${api}/${item}/versions/`, { upload: id, note: field("note")?.value ?? "" });
    else {
      const body = { name: name?.value.trim(), namespace: namespace.value, description: field("description")?.value ?? "", upload: id };
      made = (await post<{ id: string }>(`${api}/`, body)).id;
    }
    forget(id);
    upload = null; // nothing is lost any more by leaving
    isBusy = false;
    location.assign(`${page}${made}/`);
  }

  /** Put what went wrong beside what it is about, and see what can be gone on with. */
  async function explain(error: unknown): Promise<void> {
    if (error instanceof Unreadable) {
      faults.set(error.file.path, error.message);
      complain(new Refusal(0, "A file can no longer be read.", "It is marked below. What has arrived is kept."));
    } else if (error instanceof Refusal) {
      for (const fault of error.errors) {
        const at = /^files\.(\d+)/.exec(fault.field)?.[1];
        const path = at === undefined ? undefined : (upload?.files ?? choice.files)[Number(at)]?.path;
        if (path) faults.set(path, `${fault.message} ${fault.remedy}`.trim());
        if (fault.field === "name") blame(fault.message);
      }
      if (["name_taken"].includes(error.code)) blame(`${error.message} ${error.remedy}`);
      const only = upload?.files.length === 1 ? upload.files[0] : undefined;
      if (only && /zip|path_|link_/.test(error.code)) faults.set(only.path, `${error.message} ${error.remedy}`.trim());
      complain(error);
    } else {
      throw error;
    }
    if (upload) await lookAgain(upload.id);
    void refreshStorage();
  }

  /** The upload as the portal has it now; one that failed or is gone holds nothing, and the next try begins anew. */
  async function lookAgain(id: string): Promise<void> {
    try {
      const now = await look(id);
      upload = now.state === "open" || now.state === "complete" || now.state === "completing" ? now : null;
    } catch (error) {
      if (error instanceof Refusal && error.status === 404) upload = null;
      else if (!(error instanceof Refusal)) throw error;
    }
    if (!upload) forget(id);
  }

  function canGoOn(): boolean {
    if (!upload) return false;
    const { missing, changed } = match(upload.files, choice.files, times);
    for (const path of changed) faults.set(path, "This file has changed since the upload began. Cancel the upload and begin anew with the files as they are.");
    return !missing.length && !changed.length;
  }

  pause.addEventListener("click", () => {
    if (sender?.isPaused) sender.resume();
    else sender?.pause();
    speed.forget();
    show();
  });

  // --- Cancelling -------------------------------------------------------------------------------------------------

  const sure = byId("sure") as HTMLDialogElement;
  cancel.addEventListener("click", () => sure.showModal());
  for (const one of sure.querySelectorAll<HTMLButtonElement>("[data-sure]")) {
    one.addEventListener("click", () => {
      sure.close();
      if (one.dataset.sure === "yes") void stopAndDiscard();
    });
  }

  async function stopAndDiscard(): Promise<void> {
    const gone = upload;
    if (!gone) return;
    sender?.stop();
    upload = null;
    forget(gone.id);
    try {
      await discard(gone.id);
    } catch (error) {
      if (error instanceof Refusal) complain(error);
    }
    location.reload();
  }

  // --- Going on with an earlier one -------------------------------------------------------------------------------

  for (const one of document.querySelectorAll<HTMLButtonElement>("[data-go-on]")) {
    one.hidden = false;
    one.addEventListener("click", () => void goOn(one.dataset.goOn ?? ""));
  }

  async function goOn(id: string): Promise<void> {
    const known = recall(id);
    if (known && known.item !== item) {
      location.assign(known.item ? `${page}${known.item}/upload/#go-on-${id}` : `${page}upload/#go-on-${id}`);
      return;
    }
    try {
      upload = await look(id);
    } catch (error) {
      if (error instanceof Refusal) complain(error);
      return;
    }
    times = known?.times ?? [];
    if (known) {
      if (name) name.value = known.name;
      nameIsOurs = false;
      for (const [id, text] of [["description", known.description], ["note", known.note]] as const) {
        const input = field(id);
        if (input) input.value = text;
      }
      unpack.checked = known.unpack;
    }
    namespace.value = upload.namespace;
    document.querySelector<HTMLElement>(`[data-open-upload="${id}"]`)?.setAttribute("hidden", "");
    show();
    drop.scrollIntoView({ block: "center" });
    byId("pick-files").focus();
  }

  const asked = /^#go-on-([0-9a-f-]{36})$/.exec(location.hash)?.[1];
  if (asked) void goOn(asked);

  addEventListener("beforeunload", (event) => {
    if (isBusy && sender && !sender.isPaused) event.preventDefault();
  });

  function storageShown(): Storage {
    const { used, reserved, hard } = byId("quota").dataset;
    return { used: Number(used), reserved: Number(reserved), hard: hard ? Number(hard) : null };
  }
}
