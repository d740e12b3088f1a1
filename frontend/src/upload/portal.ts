// What uploading asks of the portal (docs/protocols.md, section 4).
import { Refusal, get, post, remove, type FieldFault } from "../api";
import type { Picked } from "./choice";
import type { ServerFile } from "./plan";

const AT_ONCE = 10_000;

export interface OpenUpload {
  id: string;
  namespace: string;
  state: "open" | "completing" | "complete" | "failed" | "deleting";
  part_size: number;
  size: number;
  bytes_checked: number;
  problem: { status: number; code: string; detail: string; remedy: string; errors: FieldFault[] } | null;
  file_count: number;
  files: ServerFile[];
}

export interface Signed {
  file: number;
  part: number;
  method: string;
  url: string;
  headers: Record<string, string>;
}

/** Announce the first of these files; `announce` does so with the others. */
export function begin(kind: string, namespace: string, files: Picked[]): Promise<OpenUpload> {
  return post<OpenUpload>("uploads/", { kind, namespace, files: files.slice(0, AT_ONCE).map(announced) });
}

/** Announce those of the files, which are in the order of their paths, that the portal does not know yet. */
export async function announce(upload: OpenUpload, files: Picked[]): Promise<void> {
  for (let known = upload.files.length; known < files.length; known = upload.files.length) {
    const some = files.slice(known, known + AT_ONCE).map(announced);
    const { file_count } = await post<OpenUpload>(`uploads/${upload.id}/files/`, { after: known, files: some });
    for (const { path, size } of some) {
      upload.files.push({ index: upload.files.length, path, size, parts: Math.ceil(size / upload.part_size), done: [] });
    }
    upload.file_count = file_count;
  }
}

function announced({ path, file }: Picked): { path: string; size: number } {
  return { path, size: file.size };
}

/** The upload as it is now, without its files. */
function state(id: string): Promise<OpenUpload> {
  return get<OpenUpload>(`uploads/${id}/?files=0`);
}

/** The same with all of its files, which come by page where there are many. */
export async function look(id: string): Promise<OpenUpload> {
  const upload = await get<OpenUpload>(`uploads/${id}/`);
  for (let first: number | null = upload.files.length; first !== null && first < upload.file_count; ) {
    const page: { results: ServerFile[]; next: number | null } = await get(`uploads/${id}/files/?first=${first}`);
    for (const file of page.results) upload.files.push(file);
    first = page.next;
  }
  return upload;
}

export interface PartToSign {
  file: number;
  part: number;
  sha256: string;
}

export function sign(id: string, parts: PartToSign[]): Promise<{ urls: Signed[] }> {
  return post<{ urls: Signed[] }>(`uploads/${id}/parts/`, { parts });
}

export function discard(id: string): Promise<null> {
  return remove(`uploads/${id}/`);
}

/** Ask for completion, then look until it is done. Raises what is wrong with the upload. */
export async function complete(id: string, unpack: boolean, checked: (bytes: number, of: number) => void): Promise<void> {
  let upload = await post<OpenUpload>(`uploads/${id}/complete/`, { unpack });
  for (let rest = 300; upload.state === "completing"; rest = Math.min(2_000, rest * 1.4)) {
    checked(upload.bytes_checked, upload.size);
    await new Promise((done) => setTimeout(done, rest));
    upload = await patient(() => state(id));
  }
  if (upload.state === "complete") return;
  const { status = 409, code = "conflict", detail = "The upload failed.", remedy = "Upload it again.", errors = [] } = upload.problem ?? {};
  throw new Refusal(status, detail, remedy, code, errors);
}

/** A portal that is away for a moment is asked again: the upload is being put together all the same. */
async function patient<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Refusal) || (error.status !== 0 && error.status < 500)) throw error;
      await new Promise((done) => setTimeout(done, 3_000));
    }
  }
}

const STALLED_AFTER = 60_000; // milliseconds without a byte sent or an answer

/** Send one part to its signed address, with progress. Raises `Refusal`; status 0 is a network that failed, or moved
 * nothing for a minute (code `stalled`). */
export function put(signed: Signed, body: Blob, signal: AbortSignal, sent: (bytes: number) => void): Promise<void> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest(); // fetch does not say how far it has come
    const abort = () => request.abort();
    let isStalled = false;
    const stall = () => {
      isStalled = true;
      request.abort();
    };
    let timer = setTimeout(stall, STALLED_AFTER);
    signal.addEventListener("abort", abort, { once: true });
    request.open(signed.method, signed.url);
    for (const [name, value] of Object.entries(signed.headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => {
      clearTimeout(timer);
      timer = setTimeout(stall, STALLED_AFTER);
      sent(event.loaded);
    });
    request.addEventListener("loadend", () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      if (request.status >= 200 && request.status < 300) done();
      else fail(isStalled ? stalled() : refusalOf(request.status, request.responseText));
    });
    request.send(body);
  });
}

function stalled(): Refusal {
  return new Refusal(0, `No data moved for ${STALLED_AFTER / 1_000} seconds.`, "This page retries automatically.", "stalled");
}

const FULL = ["XMinioStorageFull", "StorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded"];
const FULL_REMEDY = "Ask an administrator to free or add space, then resume the upload: the parts that arrived are kept.";

/** What a store answered at a signed address: the portal's own as problem+json, others as S3's XML. */
function refusalOf(status: number, text: string): Refusal {
  const code = /<Code>([\w.-]{1,60})<\/Code>/.exec(text)?.[1];
  if (status === 507 || (code && FULL.includes(code))) {
    return new Refusal(status, `The object store is full (${code ?? status}).`, FULL_REMEDY, "storage_full");
  }
  if (!code) return Refusal.of(status, text);
  const said = /<Message>([^<]{1,300})<\/Message>/.exec(text)?.[1] ?? "";
  return new Refusal(status, `The object store responded with ${status} ${code}${said && `: ${said}`}`, "", `store_${code}`);
}

export interface Storage {
  hard: number | null;
  used: number;
  reserved: number;
}

export async function storageOf(namespace: string): Promise<Storage> {
  type Amounts = Record<string, number | null>;
  const { hard, used, reserved } = await get<{ hard: Amounts; used: Amounts; reserved: Amounts }>(`namespaces/${namespace}/quota/`);
  return { hard: hard.storage ?? null, used: used.storage ?? 0, reserved: reserved.storage ?? 0 };
}

/** The id of what has exactly this name in the namespace; null where nothing has. */
export async function named(api: string, namespace: string, name: string): Promise<string | null> {
  const query = new URLSearchParams({ namespace, search: name, page_size: "200" });
  const { results } = await get<{ results: { id: string; name: string }[] }>(`${api}/?${query}`);
  return results.find((one) => one.name === name.normalize("NFC"))?.id ?? null;
}
