// An open log is one attempt's. When the job is run again, a line above the log says so and leads to the new one: nothing
// is taken from under a reader's eyes.
import { Refusal, get, type Job } from "../api";
import { el } from "../dom";

export class NewerAttempt {
  private isShown = false;

  /** `before` is what the line is put before; `address` is where the log of a later attempt is. */
  constructor(
    private readonly which: { job: string; attempt: number },
    private readonly before: HTMLElement,
    private readonly address: (attempt: number) => string,
  ) {}

  /** Ask whether the job has been run again since. To be called when there may be news. */
  async look(): Promise<void> {
    if (this.isShown) return;
    const attempt = await this.newest();
    if (this.isShown || attempt <= this.which.attempt) return;
    this.isShown = true;
    const line = el("div", { class: "log-note", role: "status", "data-newer": "" });
    this.before.before(line);
    line.append(`This is attempt ${this.which.attempt}. Attempt ${attempt} has started: `, el("a", { href: this.address(attempt) }, "show its log"));
  }

  private async newest(): Promise<number> {
    try {
      return (await get<Job>(`jobs/${this.which.job}/`)).attempt;
    } catch (error) {
      if (error instanceof Refusal) return 0; // the log can be read without this
      throw error;
    }
  }
}
