// What uploading asks of the portal (docs/protocols.md, section 4).
import { Refusal, get, post, remove, type FieldFault } from "../api";
import type { Picked } from "./choice";
import type { ServerFile } from "./plan";

export interface OpenUpload {
  id: string;
  namespace: string;
  state: "open" | "completing" | "complete" | "failed" | "deleting";
  part_size: number;
  size: number;
  bytes_checked: number;
  problem: { status: number; code: string; detail: string; remedy: string; errors: FieldFault[] } | null;
  files: ServerFile[];
}

export interface Signed {
  file: number;
  part: number;
  method: string;
  url: string;
  headers: Record<string, string>;
}

export function begin(kind: string, namespace: string, files: Picked[]): Promise<OpenUpload> {
  const announced = files.map(({ path, file }) => ({ path, size: file.size }));
  return post<OpenUpload>("uploads/", { kind, namespace, files: announced });
}

export function look(id: string): Promise<OpenUpload> {
  return get<OpenUpload>(`uploads/${id}/`);
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
    upload = await patient(() => look(id));
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

/** Send one part to its signed address, with progress. Raises `Refusal`; status 0 is a network that failed. */
export function put(signed: Signed, body: Blob, signal: AbortSignal, sent: (bytes: number) => void): Promise<void> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest(); // fetch does not say how far it has come
    const abort = () => request.abort();
    signal.addEventListener("abort", abort, { once: true });
    request.open(signed.method, signed.url);
    for (const [name, value] of Object.entries(signed.headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => sent(event.loaded));
    request.addEventListener("loadend", () => {
      signal.removeEventListener("abort", abort);
      if (request.status >= 200 && request.status < 300) done();
      else fail(Refusal.of(request.status, request.responseText));
    });
    request.send(body);
  });
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
