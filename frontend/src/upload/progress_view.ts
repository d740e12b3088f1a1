// How far an upload has come in all: share, bytes, speed, what is left, and in words what happens now.
import { byId } from "../dom";
import { bytes, duration } from "../words";
import { Speed } from "./plan";
import type { Sender } from "./sender";

export class ProgressView {
  private readonly speed = new Speed();
  private readonly title = document.title;

  show(sender: Sender): void {
    const sent = Math.min(sender.size, sender.sent());
    const share = this.draw(sent, sender.size);
    byId("progress-speed").textContent = this.speedWords(sender, sent);
    document.title = `${share} % · ${this.title}`;
    this.say(noteOf(sender, share));
  }

  /** An upload that does not move: what has arrived of it. */
  rest(arrived: number, size: number): void {
    this.draw(arrived, size);
    this.say("");
    byId("progress-speed").textContent = "";
    document.title = this.title;
  }

  private draw(sent: number, size: number): number {
    byId("progress").hidden = false;
    const share = size ? Math.floor((100 * sent) / size) : 100;
    const bar = byId("progress-bar") as HTMLProgressElement;
    bar.max = Math.max(1, size);
    bar.value = size ? sent : 1;
    byId("progress-words").textContent = `${share} % · ${bytes(sent)} of ${bytes(size)}`;
    return share;
  }

  /** Read aloud, so it only changes where the words do. */
  say(words: string): void {
    const note = byId("progress-note");
    if (note.textContent !== words) note.textContent = words;
  }

  begin(): void {
    this.speed.forget();
  }

  end(): void {
    byId("progress").hidden = true;
    document.title = this.title;
  }

  private speedWords(sender: Sender, sent: number): string {
    if (sender.isPaused || sender.waits) {
      this.speed.forget();
      return "";
    }
    this.speed.note(Date.now(), sent);
    const rate = this.speed.perSecond();
    return rate ? `${bytes(rate)}/s · ${duration(((sender.size - sent) / rate) * 1000)} left` : "";
  }
}

function noteOf(sender: Sender, share: number): string {
  if (sender.isPaused) return "Paused. Uploaded parts are kept for one day.";
  if (sender.waits) return `${sender.waits} Retrying automatically; uploaded parts are not sent again.`;
  return `Uploading: ${share - (share % 10)} %. You can close this page and resume later.`;
}
