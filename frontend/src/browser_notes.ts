// Shows the browser's own note when a job of the reader ends, as long as any page of the portal is open.
// Loaded only where the reader wants it. Several tabs say the same thing under the same tag: the browser shows it once.
import { get, Refusal, type Job } from "./api";
import { wordOf } from "./phases";
import { keepConnected } from "./sockets";

const FRESH = 120_000; // what was decided earlier is no news
const ENDED = new Set(["SUCCEEDED", "FAILED", "STOPPED"]);
const shown = new Set<string>();

async function look(id: string, reader: string): Promise<void> {
  let job: Job;
  try {
    job = await get<Job>(`jobs/${id}/`);
  } catch (error) {
    if (error instanceof Refusal) return; // gone, or not the reader's to see
    throw error;
  }
  const tag = `${job.id}-${job.attempt}`;
  if (job.owner !== reader || !ENDED.has(job.phase) || shown.has(tag)) return;
  shown.add(tag);
  if (!job.decided_at || Date.now() - Date.parse(job.decided_at) > FRESH) return;
  const note = new Notification(`${job.name}: ${wordOf(job.phase)}`, { body: job.message, tag });
  note.addEventListener("click", () => {
    window.focus();
    location.assign(`/jobs/${job.id}/`);
  });
}

export function showNotes(reader: string): void {
  keepConnected({
    address: () => "/ws/jobs/",
    message: (data) => data.type === "job" && void look(String(data.id), reader),
  });
}
