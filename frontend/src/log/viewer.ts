// The log viewer: puts the reader, the pane and the tools together. What it shows is also its address, so that a line, a
// task or a search can be shared.
import { Refusal } from "../api";
import { el } from "../dom";
import { toast } from "../toast";
import { ChosenBar } from "./chosen";
import { FilteredLog, MOST as MOST_FILTERED } from "./filtered";
import { keptSwitch } from "./kept_switch";
import { listenForKeys } from "./keys";
import { levelTools, type LevelTools } from "./level_tools";
import { NewerAttempt } from "./newer";
import { openLinesBox } from "./open_lines";
import { LogPages, type Levels } from "./pages";
import { Pane } from "./pane";
import { extended, hashOf, holds, linesOf, type Lines } from "./permalink";
import type { Places } from "./places";
import { LogReader, type Connection } from "./reader";
import { Search, isMatch, patternOf } from "./search";
import type { Row } from "./tape";
import type { Level } from "./levels";

interface Config {
  job: string;
  attempt: number;
  task: string;
  isOver: boolean;
  isNewest: boolean;
  lines: Places;
  levels: Levels;
}

const SAYS: Record<Connection, string> = {
  idle: "",
  live: "Live",
  lost: "Connection lost, reconnecting …",
  ended: "Complete",
  refused: "Access to this log was removed",
};
const TYPING = 350;

export class Viewer {
  private readonly config: Config;
  private readonly isPage: boolean;
  private readonly pages: LogPages;
  private readonly reader: LogReader;
  private readonly pane: Pane;
  private readonly jump: HTMLButtonElement;
  private readonly bar: ChosenBar;
  private readonly levels: LevelTools;
  private newer: NewerAttempt | null = null;
  private filtered: FilteredLog | null = null;
  private search: Search | null = null;
  private chosen: Lines | null = null;
  private unseenFrom = 0;
  private connection: Connection = "idle";

  constructor(private readonly root: HTMLElement) {
    this.config = JSON.parse(root.dataset.log ?? "{}") as Config;
    this.isPage = "page" in root.dataset;
    this.pages = new LogPages(this.config);
    const open = openLinesBox();
    this.find("box").after(open.element);
    this.reader = new LogReader(this.pages, {
      opened: (lines) => open.draw(lines),
      changed: (shift) => this.changed(shift),
      connection: (state) => this.connected(state),
      trouble: (error) => this.complain(error),
      arrived: (rows, before) => this.arrived(rows, before),
    });
    this.reader.expect(this.shownLines());
    this.pane = new Pane(this.reader, { followed: (following) => this.followed(following), drawn: (first, end) => this.place(first, end) });
    this.pane.isMarkedRow = (row) => this.isMarked(row);
    this.pane.numberOf = (row, index) => (this.config.task || this.filtered ? row.line : index) + 1;
    this.jump = el("button", { type: "button", class: "btn btn-primary log-jump" }) as HTMLButtonElement;
    this.jump.hidden = true;
    this.jump.addEventListener("click", () => void this.toEnd());
    this.bar = new ChosenBar(this.config, (task) => new LogPages({ ...this.config, task }), {
      clear: () => this.choose(null),
      trouble: (error) => this.complain(error),
    });
    this.levels = levelTools(this.find("levels"), this.pages, this.config.levels, {
      filter: (level) => this.filter(level),
      toLine: (task, line) => void this.toLine(task, line),
      trouble: (error) => this.complain(error),
    });
    this.tools();
    if (this.config.isNewest) this.watchForNewer();
    void this.start();
  }

  private find<T extends HTMLElement>(name: string): T {
    const found = this.root.querySelector<T>(`[data-${name}]`);
    if (!found) throw new Error(`The log viewer has no ${name}.`);
    return found;
  }

  /** The places that are known at the start, of what is shown. */
  private shownLines(): Places {
    const { task, lines } = this.config;
    return task ? { [task]: lines[task] ?? 0 } : lines;
  }

  // --- Beginning -----------------------------------------------------------------------------------------------------

  private async start(): Promise<void> {
    const box = this.find("box");
    this.chosen = this.isPage ? linesOf(location.hash) : null;
    const asked = new URLSearchParams(this.isPage ? location.search : "");
    if (this.chosen) await this.toLine(this.chosen.task, this.chosen.first);
    else if (Object.keys(this.config.lines).length) await this.reader.toEnd();
    this.find("static").remove();
    box.append(this.pane.scroller, this.jump, this.bar.element);
    if (this.chosen) await this.toLine(this.chosen.task, this.chosen.first);
    this.showChosen();
    if (this.config.isOver) this.connected("ended");
    else this.reader.connect();
    this.changed(0);
    const level = asked.get("level");
    if (level === "error" || level === "warning") this.levels.press(level);
    const query = asked.get("q");
    if (query) {
      this.find<HTMLInputElement>("query").value = query;
      this.find("regex").setAttribute("aria-pressed", asked.has("regex") ? "true" : "false");
      void this.lookFor(!this.chosen);
    }
  }

  // --- What comes in -------------------------------------------------------------------------------------------------

  private changed(shift: number): void {
    if (!this.filtered) this.pane.changed(shift);
    this.foot();
  }

  /** Once this attempt is over, any news of the job may be that it was run again. */
  private watchForNewer(): void {
    const { job } = this.config;
    const address = (attempt: number) => (this.isPage ? `/jobs/${job}/logs/?attempt=${attempt}` : `/jobs/${job}/`);
    this.newer = new NewerAttempt(this.config, this.find("note"), address);
    document.body.addEventListener("job-changed", () => {
      if (this.connection === "ended") void this.newer?.look();
    });
  }

  private arrived(rows: Row[], before: number): void {
    this.filtered?.arrived(rows);
    const { pattern } = this.pane.marks;
    if (pattern) this.search?.arrived(rows.filter((row) => isMatch(row, pattern)));
    this.levels.arrived(rows, before);
    this.pane.arrived(rows.length);
  }

  private connected(state: Connection): void {
    this.connection = state;
    this.root.dataset.connection = state;
    this.find("state").textContent = SAYS[state];
    if (state === "ended" && !this.config.isOver) void this.newer?.look();
    this.settled();
  }

  /** What there was to complain about is over: the note tells of the connection alone. */
  private settled(): void {
    const state = this.connection;
    const note = this.find("note");
    note.hidden = state !== "lost" && state !== "refused";
    note.textContent = state === "lost" ? "Connection lost, reconnecting … No lines will be missing." : SAYS[state];
  }

  private complain(error: unknown): void {
    if (!(error instanceof Refusal)) throw error;
    const note = this.find("note");
    note.textContent = `${error.message} ${error.remedy}`;
    note.hidden = false;
  }

  private foot(): void {
    const total = this.reader.total;
    this.find("total").textContent = total === 1 ? "1 line" : `${total.toLocaleString()} lines`;
    const unseen = Math.max(0, total - this.unseenFrom);
    this.jump.hidden = this.pane.following || this.filtered !== null || total === 0;
    this.jump.textContent = unseen > 0 && !this.pane.following ? `Jump to latest (${unseen.toLocaleString()} new)` : "Jump to latest";
    const isEmpty = (this.filtered ?? this.reader).total === 0;
    this.root.classList.toggle("log-is-empty", isEmpty);
    this.root.style.setProperty("--log-digits", String(Math.max(3, String(total).length)));
    this.pane.scroller.dataset.empty = this.filtered
      ? this.filtered.isSearching ? "Searching the full log …" : `No ${this.filtered.level === "error" ? "errors" : "warnings or errors"} in this log.`
      : this.config.isOver ? "No lines: the tasks wrote no output." : "No lines yet. They appear here as soon as a task writes output.";
  }

  private place(first: number, end: number): void {
    const place = this.find("place");
    if (this.filtered) {
      const words = this.filtered.isSearching ? "searching …" : this.filtered.isFull ? `first ${MOST_FILTERED.toLocaleString()} matches` : "all matches";
      place.textContent = `showing ${this.filtered.total.toLocaleString()} · ${words}`;
    } else place.textContent = end > first ? `${(first + 1).toLocaleString()} to ${end.toLocaleString()}` : "";
  }

  private followed(following: boolean): void {
    this.unseenFrom = this.reader.total;
    this.reader.following = following;
    if (following) void this.reader.toEnd().then(() => this.changed(0));
    this.foot();
  }

  // --- Going somewhere -----------------------------------------------------------------------------------------------

  private async toEnd(): Promise<void> {
    this.levels.release();
    await this.reader.toEnd();
    this.pane.toEnd();
    this.foot();
  }

  private async toStart(): Promise<void> {
    if (!this.filtered) await this.reader.toStart();
    this.pane.toStart();
  }

  private async toLine(task: string, line: number): Promise<void> {
    this.levels.release();
    const index = await this.reader.toLine(task, line);
    if (index === undefined) toast(`${task} has no line ${line + 1}.`, "warning");
    else this.pane.toRow(index);
    this.foot();
  }

  private filter(level: Level | null): void {
    this.filtered?.close();
    this.filtered = level && new FilteredLog(this.pages, level, () => this.refiltered(), (error) => this.complain(error));
    if (this.filtered) {
      this.pane.show(this.filtered, false);
      void this.filtered.run();
    } else {
      this.pane.show(this.reader, true);
      this.reader.following = true;
      void this.reader.toEnd().then(() => this.changed(0));
    }
    this.remember();
    this.foot();
  }

  private refiltered(): void {
    this.pane.changed(0);
    this.foot();
  }

  // --- Searching -----------------------------------------------------------------------------------------------------

  private async lookFor(goes: boolean): Promise<void> {
    this.search?.close();
    const text = this.find<HTMLInputElement>("query").value;
    const regex = this.find("regex").getAttribute("aria-pressed") === "true";
    const found = this.find("found");
    this.pane.marks.pattern = patternOf({ text, regex });
    this.pane.redraw();
    this.remember();
    this.search = null;
    found.textContent = "";
    this.settled();
    if (!text) return;
    let hasGone = !goes;
    const search = new Search(this.pages, { text, regex, level: "" }, () => {
      if (!hasGone && search.count) {
        hasGone = true;
        void this.toMatch(search.startAt(this.reader.at(this.pane.top)));
      }
      found.textContent = search.words;
    }, (error) => {
      found.textContent = "";
      this.complain(error);
    });
    this.search = search;
    found.textContent = search.words;
    await search.run();
  }

  private async step(by: number): Promise<void> {
    const { search } = this;
    if (search) await this.toMatch(search.current ? await search.step(by) : search.startAt(this.reader.at(this.pane.top)));
    else this.find("query").focus();
  }

  private async toMatch(match: { task: string; line: number } | undefined): Promise<void> {
    if (!match || !this.search) return;
    this.find("found").textContent = this.search.words;
    await this.toLine(match.task, match.line);
  }

  // --- Choosing lines ------------------------------------------------------------------------------------------------

  private isMarked(row: Row): boolean {
    const match = this.search?.current;
    return holds(this.chosen, row.task, row.line) || (match?.task === row.task && match.line === row.line);
  }

  private choose(lines: Lines | null): void {
    this.chosen = lines;
    if (this.isPage) history.replaceState(null, "", `${location.pathname}${location.search}${lines ? hashOf(lines) : ""}`);
    this.showChosen();
  }

  private showChosen(): void {
    this.bar.show(this.chosen);
    this.pane.draw();
  }

  // --- Tools ---------------------------------------------------------------------------------------------------------

  private tools(): void {
    for (const name of ["levels", "search", "times", "wrap", "keys"]) this.find(name).hidden = false;
    keptSwitch(this.find("wrap"), "wrap", false, (on) => this.pane.wrap(on));
    keptSwitch(this.find("times"), "times", matchMedia("(min-width: 768px)").matches, (on) => {
      this.root.classList.toggle("log-without-times", !on);
      this.pane.draw();
    });
    this.root.classList.toggle("log-of-one-task", this.config.task !== "");
    for (const name of ["task", "attempt"]) {
      this.root.querySelector<HTMLSelectElement>(`select[data-${name}]`)?.addEventListener("change", () => this.elsewhere());
    }
    let typing = 0;
    this.find("query").addEventListener("input", () => {
      clearTimeout(typing);
      typing = window.setTimeout(() => void this.lookFor(true), TYPING);
    });
    this.find<HTMLFormElement>("search").addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(typing);
      const isSame = this.search && this.search.query.text === this.find<HTMLInputElement>("query").value;
      void (isSame ? this.step(1) : this.lookFor(true));
    });
    this.find("query").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.shiftKey || !this.search) return;
      event.preventDefault();
      void this.step(-1);
    });
    this.find("regex").addEventListener("click", () => {
      const button = this.find("regex");
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      void this.lookFor(true);
    });
    this.find("next").addEventListener("click", () => void this.step(1));
    this.find("previous").addEventListener("click", () => void this.step(-1));
    this.pane.scroller.addEventListener("click", (event) => this.clicked(event));
    listenForKeys(this.root, this.isPage, {
      down: () => this.pane.by(1),
      up: () => this.pane.by(-1),
      start: () => void this.toStart(),
      end: () => void this.toEnd(),
      search: () => this.find("query").focus(),
      next: () => void this.step(1),
      previous: () => void this.step(-1),
      firstError: () => void this.levels.firstError(),
      leave: () => {
        this.choose(null);
        this.pane.scroller.focus();
      },
    });
    if (this.isPage) window.addEventListener("hashchange", () => {
      this.chosen = linesOf(location.hash);
      this.showChosen();
      if (this.chosen) void this.toLine(this.chosen.task, this.chosen.first);
    });
  }

  /** A line's number was clicked: it is chosen; with the shift key, all lines from the one chosen before. */
  private clicked(event: MouseEvent): void {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a.log-number");
    const lines = link && linesOf(link.hash);
    if (!lines || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.choose(event.shiftKey ? extended(this.chosen, lines.task, lines.first) : lines);
    if (this.filtered) void this.toLine(lines.task, lines.first);
  }

  /** Another task or attempt is another log: a page of its own, with the same search. */
  private elsewhere(): void {
    const query = this.query();
    const task = this.root.querySelector<HTMLSelectElement>("select[data-task]")?.value;
    const attempt = this.root.querySelector<HTMLSelectElement>("select[data-attempt]")?.value;
    query.set("attempt", attempt ?? String(this.config.attempt));
    if (task) query.set("task", task);
    else query.delete("task");
    location.assign(`/jobs/${this.config.job}/logs/?${query}`);
  }

  private query(): URLSearchParams {
    const query = new URLSearchParams(this.isPage ? location.search : "");
    const text = this.find<HTMLInputElement>("query").value;
    const isRegex = this.find("regex").getAttribute("aria-pressed") === "true";
    for (const [name, value] of [["q", text], ["regex", text && isRegex ? "1" : ""], ["level", this.filtered?.level ?? ""]] as const) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    return query;
  }

  private remember(): void {
    if (!this.isPage) return;
    const query = this.query().toString();
    history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${location.hash}`);
  }
}

/** A log that is the page begins at once, one inside another page when it is nearly seen: most readers never scroll there. */
export function startViewers(): void {
  for (const root of document.querySelectorAll<HTMLElement>("[data-log]")) {
    if ("page" in root.dataset) {
      new Viewer(root);
      continue;
    }
    const nearly = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      nearly.disconnect();
      new Viewer(root);
    }, { rootMargin: "200px" });
    nearly.observe(root);
  }
}
