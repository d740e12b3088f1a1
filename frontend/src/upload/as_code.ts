// A folder, or some files, sent in one go as a version of code: what the launch form does with what is chosen there.
// No page: large uploads, which are paused and resumed, have their own (`page.ts`).
import { post } from "../api";
import { choose, nameFor } from "./choice";
import { picked } from "./drop";
import { match } from "./plan";
import { announce, begin, complete, discard, named } from "./portal";
import { Sender } from "./sender";

export interface MadeVersion {
  /** Of the version. */
  id: string;
  name: string;
  number: number;
}

interface Version {
  id: string;
  number: number;
}

const LOOK_EVERY = 250;
const NO_NAME = "code";

/** Send the files, and make the next version of the code that has the folder's name in this namespace; new code where there
 * is none. `portal`: its own address, `say` is given what happens. Raises `Refusal` and `Unreadable`; then nothing is left. */
export async function sentAsCode(given: File[], namespace: string, portal: string, say: (words: string) => void): Promise<MadeVersion> {
  const all = picked(given);
  const { files } = choose(all);
  const name = nameFor(all) || NO_NAME;
  say(`Uploading ${name} …`);
  const upload = await begin("code", namespace, files);
  try {
    await announce(upload, files);
    const sender = new Sender(upload, match(upload.files, files, []).sources, (url) => (url.startsWith(portal) ? url.slice(portal.length) : url));
    const timer = setInterval(() => say(sender.waits || `Uploading ${name}: ${percent(sender)} %`), LOOK_EVERY);
    try {
      await sender.run();
    } finally {
      clearInterval(timer);
    }
    say(`Verifying ${name} …`);
    await complete(upload.id, false, () => undefined);
    return { name, ...(await versionOf(upload.id, name, namespace)) };
  } catch (error) {
    await discard(upload.id).catch(() => undefined); // else it is discarded after a day
    throw error;
  }
}

async function versionOf(upload: string, name: string, namespace: string): Promise<Version> {
  const known = await named("code", namespace, name);
  if (known) return post<Version>(`code/${known}/versions/`, { upload, note: "" });
  const made = await post<{ latest: Version }>("code/", { name, description: "", namespace, upload });
  return made.latest;
}

function percent(sender: Sender): number {
  return sender.size ? Math.floor((100 * sender.sent()) / sender.size) : 0;
}
