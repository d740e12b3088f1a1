// The SHA-256 of what is sent: the store compares it, so that nothing arrives damaged.

/** In hexadecimal. The bytes are read into memory, a part at a time. */
export async function sha256Of(bytes: Blob): Promise<string> {
  const data = new Uint8Array(await bytes.arrayBuffer());
  const digest = await digestOf(data);
  return Array.from(digest, (one) => one.toString(16).padStart(2, "0")).join("");
}

async function digestOf(data: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  // Browsers have it on https and on this machine alone; a portal in a lab often has neither.
  if (globalThis.crypto?.subtle) return new Uint8Array(await crypto.subtle.digest("SHA-256", data));
  const { sha256 } = await import("@noble/hashes/sha2.js");
  return sha256(data);
}
