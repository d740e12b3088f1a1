// The namespace's storage: what is used and reserved, what the chosen files need, and what then remains.
import { byId } from "../dom";
import { bytes } from "../words";
import type { Storage } from "./portal";

/** `needed`: bytes that are not reserved yet. */
export function showStorage(storage: Storage, needed: number): void {
  const { hard, used, reserved } = storage;
  const words = [`${bytes(used)} used`];
  if (reserved) words.push(`${bytes(reserved)} reserved`);
  byId("quota-words").textContent = `${words.join(", ")}${hard === null ? ", no limit" : ` of ${bytes(hard)}`}`;
  const after = byId("quota-after");
  after.classList.remove("fault");
  after.textContent = needed ? `This needs ${bytes(needed)}.` : "";
  byId("quota-bar").toggleAttribute("hidden", hard === null);
  if (hard === null) return;
  const left = hard - used - reserved - needed;
  if (left < 0) {
    after.classList.add("fault");
    after.textContent = `⚠ This needs ${bytes(needed)}, ${bytes(-left)} more than available. Delete versions that you no longer need, or ask an administrator for more storage.`;
  } else if (needed) {
    after.textContent = `This needs ${bytes(needed)}; ${bytes(left)} of ${bytes(hard)} remain after that.`;
  } else {
    after.textContent = `${bytes(left)} of ${bytes(hard)} available.`;
  }
  const share = (amount: number) => `${Math.min(100, (100 * amount) / Math.max(1, hard)).toFixed(2)}%`;
  byId("quota-new").setAttribute("width", share(used + reserved + needed));
  byId("quota-reserved").setAttribute("width", share(used + reserved));
  byId("quota-used").setAttribute("width", share(used));
}
