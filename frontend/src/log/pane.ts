// The scrolled view of a log: only the rows that are seen are in the page. Not here: which rows there are (`Strip`).
import { el } from "../dom";
import { anchorAfter, around, atEnd, clamped, contentHeight, drawn, moved, scrollOf, type Anchor, type View } from "./geometry";
import { Folds } from "./folds";
import { foldElement, openedElement, remark, renumber, rowElement, type Marks } from "./rows";
import type { Row } from "./tape";

export interface Strip {
  readonly total: number;
  at(index: number): Row | undefined;
  want(first: number, end: number): void;
}

const MORE = 15;
const RESTING = 160;
const TOUCHED = 1_500;
const SLOW = 3; // lines a second that a screen reader can still read out

export interface PaneListener {
  /** The reader has scrolled away from the end, or back to it. */
  followed: (following: boolean) => void;
  drawn: (first: number, end: number) => void;
}

export class Pane {
  readonly scroller: HTMLElement;
  readonly marks: Marks = { pattern: null };
  isMarkedRow: (row: Row) => boolean = () => false;
  /** What stands before a row: by default its number in its task's log. */
  numberOf: (row: Row, index: number) => number = (row) => row.line + 1;
  following = true;
  private readonly spacer: HTMLElement;
  private readonly list: HTMLElement;
  private readonly elements = new Map<Row, HTMLElement>();
  private readonly folds = new Folds((index) => this.strip.at(index), (row) => this.isMarkedRow(row));
  /** The row whose fold was just opened or closed: its button has the focus again when it is drawn. */
  private toggled: Row | null = null;
  private heights = new WeakMap<Row, number>();
  private rowHeight = 20;
  private wraps = false;
  private widest = 0;
  private anchor: Anchor = { row: 0, offset: 0 };
  private scroll = 0;
  private height = 0;
  private frame = 0;
  private scrolledAt = 0;
  private touchedAt = 0;
  private arrivals: number[] = [];

  constructor(
    private strip: Strip,
    private readonly listener: PaneListener,
  ) {
    this.list = el("div", { class: "log-rows", role: "log", "aria-live": "off", "aria-relevant": "additions", "aria-label": "Lines" });
    this.spacer = el("div", { class: "log-spacer" }, this.list);
    this.scroller = el("div", { class: "log-scroller", tabindex: "0", role: "region", "aria-label": "Log lines" }, this.spacer);
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    for (const event of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      this.scroller.addEventListener(event, () => (this.touchedAt = performance.now()), { passive: true });
    }
    new ResizeObserver(() => {
      this.heights = new WeakMap();
      this.draw();
    }).observe(this.scroller);
  }

  show(strip: Strip, following: boolean): void {
    this.strip = strip;
    this.following = following;
    this.anchor = { row: 0, offset: 0 };
    this.heights = new WeakMap();
    this.draw();
  }

  wrap(wraps: boolean): void {
    this.wraps = wraps;
    this.scroller.classList.toggle("log-wraps", wraps);
    this.heights = new WeakMap();
    this.list.style.minWidth = "";
    this.widest = 0;
    this.draw();
  }

  /** The rows have changed; all indices by `shift`. */
  changed(shift: number): void {
    this.anchor = { row: Math.max(0, this.anchor.row + shift), offset: this.anchor.offset };
    this.draw();
  }

  /** How many lines came, so that a screen reader is given only what it can keep up with. */
  arrived(count: number): void {
    const now = performance.now();
    for (let i = 0; i < Math.min(count, SLOW + 1); i += 1) this.arrivals.push(now);
    while (this.arrivals.length && now - (this.arrivals[0] ?? 0) > 1_000) this.arrivals.shift();
    const live = this.following && this.arrivals.length <= SLOW ? "polite" : "off";
    if (this.list.getAttribute("aria-live") !== live) this.list.setAttribute("aria-live", live);
  }

  toEnd(): void {
    this.follow(true);
    this.draw();
  }

  toRow(index: number): void {
    this.folds.open(index);
    this.follow(false);
    this.anchor = around(index, this.view());
    this.draw();
  }

  toStart(): void {
    this.follow(false);
    this.anchor = { row: 0, offset: 0 };
    this.draw();
  }

  by(rows: number): void {
    this.follow(false);
    this.anchor = clamped(moved(this.anchor, rows * this.rowHeight, this.view()), this.view());
    this.draw();
  }

  /** The first row that is seen whole. */
  get top(): number {
    return this.anchor.row + (this.anchor.offset > 1 ? 1 : 0);
  }

  /** Draw soon; as often as it is called, once for each frame. */
  draw(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  /** Rows look different now: what is searched for or chosen has changed. */
  redraw(): void {
    for (const [row, element] of this.elements) if (!element.dataset.count) remark(element, row, this.marks);
    this.draw();
  }

  private view(): View {
    const height = this.scroller.clientHeight;
    return { rows: this.strip.total, height, estimate: this.rowHeight, heightOf: (index) => this.heightOf(index) };
  }

  private heightOf(index: number): number {
    const fold = this.folds.size(index);
    if (fold !== null || !this.wraps) return fold === 0 ? 0 : this.rowHeight;
    const row = this.strip.at(index);
    return (row && this.heights.get(row)) ?? this.rowHeight;
  }

  private scrolled(): void {
    const to = this.scroller.scrollTop;
    const from = this.scroll;
    if (Math.abs(to - from) < 1) return;
    const now = performance.now();
    const isLaidOutAnew = this.scroller.clientHeight !== this.height || (to === 0 && now - this.touchedAt > TOUCHED);
    if (this.following && isLaidOutAnew) {
      this.draw(); // the browser has moved it, not this code
      return;
    }
    this.scroll = to;
    this.scrolledAt = now;
    const view = this.view();
    this.anchor = anchorAfter(this.following ? atEnd(view) : this.anchor, from, to, view);
    const last = atEnd(view);
    const isLast = this.anchor.row > last.row || (this.anchor.row === last.row && this.anchor.offset >= last.offset - 2);
    this.follow(to > from && isLast);
    const isAtEdge = to <= 0 || to >= contentHeight(view) - view.height - 1;
    if (isAtEdge) this.scrolledAt = 0; // there may be more rows that way than the scroll bar has pixels left
    this.draw();
    setTimeout(() => this.draw(), RESTING + 20); // then the scroll bar is put where it belongs
  }

  /** Show or fold the rows of the run that begins with this one, where it is now. */
  private toggle(row: Row): void {
    for (let index = this.anchor.row; index < this.strip.total; index += 1) {
      if (this.strip.at(index) !== row) continue;
      if (this.folds.openSize(index)) this.folds.close(index);
      else this.folds.open(index);
      break;
    }
    this.toggled = row;
    this.draw();
  }

  private focusToggled(): void {
    if (!this.toggled) return;
    const button = this.elements.get(this.toggled)?.querySelector<HTMLElement>("[aria-expanded]");
    (button ?? this.scroller).focus({ preventScroll: true });
    this.toggled = null;
  }

  private follow(following: boolean): void {
    if (this.following === following) return;
    this.following = following;
    this.listener.followed(following);
  }

  private render(): void {
    if (!this.scroller.clientHeight) return;
    let view = this.view();
    this.anchor = this.following ? atEnd(view) : clamped(this.anchor, view);
    let range = drawn(this.anchor, view, MORE);
    this.put(range.first, range.end);
    if (this.measure(range.first, range.end)) {
      view = this.view();
      this.anchor = this.following ? atEnd(view) : clamped(this.anchor, view);
      range = drawn(this.anchor, view, MORE);
      this.put(range.first, range.end);
      this.measure(range.first, range.end);
    }
    this.place(range.first, view);
    this.focusToggled();
    this.strip.want(range.first, range.end);
    this.listener.drawn(this.top, drawn(this.anchor, view, 0).end);
  }

  /** Have exactly these rows in the page, and touch no other: what is selected stays selected. */
  private put(first: number, end: number): void {
    const wanted: HTMLElement[] = [];
    const kept = new Set<Row>();
    for (let index = first; index < end; index += 1) {
      const row = this.strip.at(index);
      if (!row) {
        wanted.push(el("div", { class: "log-row log-unread" }, " "));
        continue;
      }
      const fold = this.folds.size(index);
      if (fold === 0) continue;
      kept.add(row);
      let element = this.elements.get(row);
      const opened = fold === null ? this.folds.openSize(index) : 0;
      const { count = "", open = "" } = element?.dataset ?? {};
      if (!element || count !== String(fold ?? "") || open !== String(opened || "")) {
        element = this.element(row, fold ?? 0, opened);
        this.elements.set(row, element);
      }
      element.classList.toggle("log-chosen", this.isMarkedRow(row));
      renumber(element, row, this.numberOf(row, index));
      wanted.push(element);
    }
    for (const row of this.elements.keys()) if (!kept.has(row)) this.elements.delete(row);
    const stay = new Set<Element>(wanted);
    for (const child of [...this.list.children]) if (!stay.has(child)) child.remove();
    let place = this.list.firstElementChild;
    for (const element of wanted) {
      if (element === place) place = place.nextElementSibling;
      else this.list.insertBefore(element, place);
    }
  }

  private element(row: Row, folded: number, opened: number): HTMLElement {
    if (folded) return foldElement(row, folded, () => this.toggle(row));
    return opened ? openedElement(row, opened, this.marks, () => this.toggle(row)) : rowElement(row, this.marks);
  }

  /** Whether any row has another height than was thought. */
  private measure(first: number, end: number): boolean {
    if (!this.wraps) {
      const sample = this.list.firstElementChild?.getBoundingClientRect().height;
      const differs = sample !== undefined && sample > 0 && Math.abs(sample - this.rowHeight) > 0.01;
      if (differs) this.rowHeight = sample;
      return differs;
    }
    let differs = false;
    for (let index = first; index < end; index += 1) {
      const row = this.strip.at(index);
      const element = row && this.elements.get(row);
      if (!row || !element || element.dataset.count) continue;
      const height = element.getBoundingClientRect().height;
      if (Math.abs(height - this.heightOf(index)) > 0.5) differs = true;
      this.heights.set(row, height);
    }
    return differs;
  }

  /** Put the rows where they are seen, and the scroll bar where it belongs, unless the reader is moving it. */
  private place(first: number, view: View): void {
    this.spacer.style.height = `${contentHeight(view)}px`;
    this.height = view.height;
    const wanted = scrollOf(this.anchor, view);
    const isMoving = performance.now() - this.scrolledAt < RESTING && !this.following;
    if (!isMoving && Math.abs(this.scroller.scrollTop - wanted) >= 1) this.scroller.scrollTop = wanted;
    this.scroll = this.scroller.scrollTop;
    let above = this.anchor.offset;
    for (let index = first; index < this.anchor.row; index += 1) above += this.heightOf(index);
    this.list.style.transform = `translateY(${Math.round(this.scroll - above)}px)`;
    if (this.wraps || this.list.offsetWidth <= this.widest) return;
    this.widest = this.list.offsetWidth; // else the page would jump sideways as long lines come and go
    this.list.style.minWidth = `${this.widest}px`;
  }
}
