// The life of the page: choose files, see what they cost, send them, and make the version of what was sent. An upload that
// was interrupted, here or in a closed tab, resumes with the parts that are missing.
import { Refusal, post } from "../api";
import { byId, el, fill } from "../dom";
import { bytes } from "../words";
import { choose, nameFor, type Choice, type Picked } from "./choice";
import { Fields } from "./fields";
import { showFiles, type FileRow } from "./file_list";
import { forget, forgetOld, recall, remember } from "./memory";
import { listenForFiles, lockPickers } from "./picking";
import { arrivedOf, lackingOf, match } from "./plan";
import { announce, begin, complete, discard, look, named, storageOf, type OpenUpload, type Storage } from "./portal";
import { ProgressView } from "./progress_view";
import { showStorage } from "./quota";
import { Sender, Unreadable } from "./sender";

const REDRAW = 250;
const MOST_TIMES = 20_000; // more would not fit into what a browser keeps
const ARCHIVE = /\.(zip|tar|t[abgx]z|tbz2|tzst|tar\.(gz|bz2|xz|zst))$/i;
const TRY_AGAIN = "Uploaded parts are kept. Try again once the portal is back.";
const CHANGED = "This file changed after the upload started. Cancel the upload and start again.";

export class UploadPage {
  private all: Picked[] = [];
  private choice: Choice = { files: [], leftOut: new Map() };
  /** What is under way: begun here, or an earlier one that is resumed. */
  private upload: OpenUpload | null = null;
  /** When its files were last changed, by index. */
  private times: number[] = [];
  /** How many files it is to have, as far as known. */
  private count = 0;
  private sender: Sender | null = null;
  private isBusy = false;
  /** What is wrong with a file, by path. */
  private readonly faults = new Map<string, string>();
  private storage: Storage;
  private readonly fields: Fields;
  private readonly progress = new ProgressView();
  private readonly go = byId("start") as HTMLButtonElement;
  private readonly goContent = [...byId("start").cloneNode(true).childNodes];
  private readonly sure = byId("sure") as HTMLDialogElement;
  /** What the page says of itself: `dataset` or `code`, its API, the item whose next version this is, addresses. */
  private readonly about: { kind: string; api: string; item: string; page: string; portal: string; mostFiles: number };

  constructor(private readonly form: HTMLFormElement) {
    const { kind = "", api = "", item = "", page = "", portal = "", mostFiles = "" } = form.dataset;
    this.about = { kind, api, item, page, portal, mostFiles: Number(mostFiles) };
    const { used, reserved, hard } = byId("quota").dataset;
    this.storage = { used: Number(used), reserved: Number(reserved), hard: hard ? Number(hard) : null };
    this.fields = new Fields({
      name: () => void this.isNameFree().catch(() => true),
      namespace: () => void Promise.all([this.refreshStorage(), this.isNameFree(false).catch(() => true)]),
    });
  }

  start(): void {
    this.form.hidden = false;
    forgetOld(Date.now());
    listenForFiles({
      isOff: () => this.isBusy,
      reading: () => this.tell("Reading the folder …"),
      add: (files) => this.add(files),
      failed: () => this.complain(new Refusal(0, "The dropped files cannot be read.", "Choose them with a button instead.")),
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.isBusy && !this.go.disabled) void this.run();
    });
    this.listenForButtons();
    addEventListener("beforeunload", (event) => {
      if (this.sender && !this.sender.isPaused) event.preventDefault();
    });
    this.show();
    const asked = /^#go-on-([0-9a-f-]{36})$/.exec(location.hash)?.[1];
    if (asked) void this.goOn(asked);
  }

  private listenForButtons(): void {
    byId("pause").addEventListener("click", () => {
      if (this.sender?.isPaused) this.sender.resume();
      else this.sender?.pause();
      this.show();
    });
    byId("clear").addEventListener("click", () => {
      this.all = [];
      this.add([]);
    });
    byId("cancel").addEventListener("click", () => this.sure.showModal());
    for (const answer of this.sure.querySelectorAll<HTMLButtonElement>("[data-sure]")) {
      answer.addEventListener("click", () => {
        this.sure.close();
        if (answer.dataset.sure === "yes") void this.cancel();
      });
    }
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-go-on]")) {
      button.hidden = false;
      button.addEventListener("click", () => void this.goOn(button.dataset.goOn ?? ""));
    }
  }

  // --- Choosing ---------------------------------------------------------------------------------------------------

  private add(files: Picked[]): void {
    this.all = [...this.all, ...files];
    this.choice = choose(this.all);
    this.faults.clear();
    this.complain(null);
    this.fields.suggestName(nameFor(this.all));
    const count = this.choice.files.length;
    if (count > this.about.mostFiles) {
      const many = `Too many files: ${count.toLocaleString()}. An upload has at most ${this.about.mostFiles.toLocaleString()}.`;
      this.complain(new Refusal(400, many, "Pack small files into one archive or into TFRecord shards."));
    }
    for (const path of this.upload ? match(this.upload.files, this.choice.files, this.times).changed : []) this.faults.set(path, CHANGED);
    this.show();
  }

  private isReady(): boolean {
    if (!this.upload) return this.choice.files.length > 0 && this.choice.files.length <= this.about.mostFiles;
    if (this.upload.state !== "open") return true;
    const { missing, changed } = match(this.upload.files, this.choice.files, this.times);
    const isWhole = this.upload.files.length >= this.count || this.choice.files.length === this.count;
    return isWhole && !missing.length && !changed.length;
  }

  private async isNameFree(mustBeThere = true): Promise<boolean> {
    if (!this.fields.asksForName) return true;
    const { name } = this.fields.typed();
    if (!name) {
      this.fields.blameName(mustBeThere ? "Enter a name." : "");
      return false;
    }
    const taken = await named(this.about.api, this.fields.namespace, name);
    if (!taken) this.fields.blameName("");
    else this.fields.blameName(`This name already exists. Choose another name, or `, { href: `${this.about.page}${taken}/upload/`, words: "add a version to it" });
    return !taken;
  }

  private async refreshStorage(): Promise<void> {
    try {
      this.storage = await storageOf(this.fields.namespace);
      this.show();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error; // the numbers shown are then a little older
    }
  }

  // --- Sending ----------------------------------------------------------------------------------------------------

  private async run(): Promise<void> {
    this.isBusy = true;
    this.faults.clear();
    this.complain(null);
    this.show();
    try {
      // Asked before the first byte is sent: so that a taken name is known before an hour of uploading.
      if (!(await this.isNameFree())) return this.fields.focusName();
      const upload = (this.upload ??= await this.begin());
      if (upload.state === "open") await this.send(upload);
      if (this.upload) await this.finish(this.upload);
    } catch (error) {
      await this.explain(error);
    } finally {
      this.isBusy = false;
      this.sender = null;
      this.show();
    }
  }

  private async begin(): Promise<OpenUpload> {
    const files = this.choice.files;
    const upload = await begin(this.about.kind, this.fields.namespace, files);
    this.count = files.length;
    this.times = files.length > MOST_TIMES ? [] : files.map(({ file }) => file.lastModified);
    const { item } = this.about;
    remember(upload.id, { ...this.fields.typed(), item, times: this.times, count: this.count, at: Date.now() });
    return upload;
  }

  private async send(upload: OpenUpload): Promise<void> {
    if (upload.files.length < this.count) {
      this.tell("Announcing the files …");
      await announce(upload, this.choice.files);
    }
    const { sources } = match(upload.files, this.choice.files, this.times);
    const { portal } = this.about; // a page opened under another name of the portal may send to its own origin only
    this.sender = new Sender(upload, sources, (url) => (url.startsWith(portal) ? url.slice(portal.length) : url));
    this.progress.begin();
    this.show();
    const timer = setInterval(() => this.draw(), REDRAW + upload.files.length / 200);
    try {
      await this.sender.run();
    } finally {
      clearInterval(timer);
      this.draw();
    }
  }

  private async finish(upload: OpenUpload): Promise<void> {
    byId("pause").hidden = byId("cancel").hidden = true;
    if (upload.state !== "complete") {
      this.progress.say("Upload complete. The portal is assembling and verifying the files …");
      const isArchive = upload.files.length === 1 && ARCHIVE.test(upload.files[0]?.path ?? "");
      await complete(upload.id, isArchive && this.fields.typed().unpack, (checked, of) => {
        if (checked) this.progress.say(`Upload complete. Verified: ${bytes(checked)} of ${bytes(of)} …`);
      });
      upload.state = "complete";
    }
    const made = await this.make(upload.id);
    forget(upload.id);
    this.sender = this.upload = null; // nothing is lost any more by leaving
    location.assign(`${this.about.page}${made}/`);
  }

  /** The id of the dataset or code that has the new version. */
  private async make(upload: string): Promise<string> {
    const { name, description, note } = this.fields.typed();
    const { api, item } = this.about;
    if (!item) return (await post<{ id: string }>(`${api}/`, { name, description, namespace: this.fields.namespace, upload })).id;
    await post(`${api}/${item}/versions/`, { upload, note });
    return item;
  }

  private async cancel(): Promise<void> {
    const gone = this.upload;
    if (!gone) return;
    this.upload = null;
    this.sender?.stop();
    this.sender = null;
    forget(gone.id);
    try {
      await discard(gone.id);
      location.reload();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.complain(error);
    }
  }

  // --- What went wrong, and going on ------------------------------------------------------------------------------

  /** Put what went wrong beside what it is about, and see what can be gone on with. */
  private async explain(error: unknown): Promise<void> {
    if (error instanceof Refusal && error.status === 0) {
      // Parts are tried again by themselves; the beginning and the end of an upload are not.
      this.complain(new Refusal(0, error.message, TRY_AGAIN));
    } else if (error instanceof Unreadable) {
      this.faults.set(error.file.path, error.message);
      this.complain(new Refusal(0, "A file can no longer be read.", "It is marked below. Uploaded parts are kept."));
    } else if (error instanceof Refusal) {
      this.blameFiles(error);
      if (error.code === "name_taken" || error.errors.some((one) => one.field === "name")) this.fields.blameName(`${error.message} ${error.remedy}`);
      const marked = this.faults.size;
      const many = marked === 1 ? "One file cannot be uploaded." : `${marked} files cannot be uploaded.`;
      this.complain(error.code === "invalid" && marked ? new Refusal(error.status, many, "The reason is shown next to each file. Nothing was sent.") : error);
    } else {
      throw error;
    }
    if (this.upload) await this.lookAgain(this.upload.id);
    void this.refreshStorage();
  }

  private blameFiles(refusal: Refusal): void {
    const paths = this.upload?.files.map((file) => file.path) ?? this.choice.files.map((one) => one.path);
    for (const one of refusal.errors) {
      const path = paths[Number(/^files\.(\d+)/.exec(one.field)?.[1] ?? NaN)];
      if (path !== undefined) this.faults.set(path, `${one.message} ${one.remedy}`.trim());
    }
    const [only] = paths;
    if (only !== undefined && paths.length === 1 && /zip|archive|tar|path_|link_|sparse_|special_/.test(refusal.code)) this.faults.set(only, `${refusal.message} ${refusal.remedy}`.trim());
  }

  /** The upload as the portal has it now. One that failed or is gone holds nothing: the next try starts from the beginning. */
  private async lookAgain(id: string): Promise<void> {
    try {
      const now = await look(id);
      this.upload = ["open", "completing", "complete"].includes(now.state) ? now : null;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.status === 404) this.upload = null;
    }
    if (!this.upload) forget(id);
  }

  /** Take up an upload that was left open. What was typed for another page is gone on with there. */
  private async goOn(id: string): Promise<void> {
    const { page, item } = this.about;
    const known = recall(id);
    if (known && known.item !== item) return location.assign(`${page}${known.item ? `${known.item}/` : ""}upload/#go-on-${id}`);
    try {
      this.upload = await look(id);
    } catch (error) {
      if (error instanceof Refusal) return this.complain(error);
      throw error;
    }
    this.times = known?.times ?? [];
    this.count = known?.count ?? 0;
    this.fields.restore(known, this.upload.namespace);
    document.querySelector<HTMLElement>(`[data-open-upload="${id}"]`)?.setAttribute("hidden", "");
    this.add([]);
    byId("drop").scrollIntoView({ block: "center" });
    byId("pick-files").focus({ preventScroll: true });
  }

  // --- What is shown ----------------------------------------------------------------------------------------------

  private show(): void {
    this.go.hidden = this.isBusy;
    this.go.disabled = !this.isReady();
    if (this.upload) this.go.textContent = this.upload.state === "complete" ? "Create version" : "Resume";
    else this.go.replaceChildren(...this.goContent);
    byId("pause").hidden = !this.sender;
    byId("pause").textContent = this.sender?.isPaused ? "Resume" : "Pause";
    byId("cancel").hidden = !this.upload;
    byId("clear").hidden = this.isBusy || !this.all.length;
    this.fields.lock(this.isBusy, this.upload !== null);
    this.fields.offerUnpacking(this.choice.files.length === 1 && ARCHIVE.test(this.choice.files[0]?.path ?? ""));
    lockPickers(this.isBusy);
    this.tell(this.chosenWords());
    showStorage(this.storage, this.upload ? 0 : sizeOf(this.choice.files));
    this.draw();
  }

  private draw(): void {
    const rows = this.rows();
    byId("files").hidden = !rows.length;
    showFiles(byId("files"), rows, this.upload !== null);
    if (this.sender) this.progress.show(this.sender);
    else if (!this.upload) this.progress.end();
    else if (!this.isBusy) this.progress.rest(...arrivedIn(this.upload));
  }

  private rows(): FileRow[] {
    const fault = (path: string) => this.faults.get(path) ?? "";
    const { upload, sender } = this;
    if (!upload) return this.choice.files.map(({ path, file }) => ({ path, size: file.size, sent: 0, isMoving: false, fault: fault(path) }));
    return upload.files.map((file) => ({
      path: file.path,
      size: file.size,
      sent: sender ? sender.sentOf(file) : arrivedOf(file, upload.part_size),
      isMoving: sender?.isMoving(file) ?? false,
      fault: fault(file.path),
    }));
  }

  private chosenWords(): string {
    const { files, leftOut } = this.choice;
    const words: string[] = [];
    if (this.upload?.state === "open" && !this.sender) words.push(...toGoOn(this.upload, files, this.times));
    else if (files.length) words.push(`${files.length.toLocaleString()} ${files.length === 1 ? "file" : "files"}, ${bytes(sizeOf(files))}.`);
    const names = [...leftOut].map(([name, count]) => (count > 1 ? `${name} (${count.toLocaleString()} files)` : name));
    if (names.length) words.push(`Skipped: ${names.join(", ")}.`);
    return words.join(" ");
  }

  private tell(words: string): void {
    const place = byId("chosen-words");
    place.hidden = !words;
    if (place.textContent !== words) place.textContent = words;
  }

  private complain(refusal: Refusal | null): void {
    const trouble = byId("trouble");
    trouble.hidden = refusal === null;
    if (!refusal) return;
    fill(trouble, el("strong", {}, refusal.message), " ", refusal.remedy);
    trouble.focus();
  }
}

function sizeOf(files: Picked[]): number {
  return files.reduce((sum, one) => sum + one.file.size, 0);
}

/** Bytes that have arrived, and bytes in all. */
function arrivedIn(upload: OpenUpload): [number, number] {
  const there = upload.files.reduce((sum, file) => sum + arrivedOf(file, upload.part_size), 0);
  return [there, upload.files.reduce((sum, file) => sum + file.size, 0)];
}

/** Which files of a resumed upload must be selected again. */
function toGoOn(upload: OpenUpload, chosen: Picked[], times: number[]): string[] {
  const words: string[] = [];
  const { missing } = match(upload.files, chosen, times);
  const lacking = upload.files.filter((file) => lackingOf(file).length).length;
  if (missing.length === lacking && lacking) words.push("Choose the same files again to resume. Only missing parts are sent.");
  else if (missing.length) words.push(`${missing.length.toLocaleString()} files are still missing, such as ${missing[0]}.`);
  return words;
}
