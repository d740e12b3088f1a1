// Which rows a scrolled view of very many rows shows. Pure arithmetic; measured heights come in as a function.
//
// The truth is the anchor: the row at the top edge, and how much of it is scrolled away. A browser cannot make an element
// as high as millions of rows, so the scroll bar's way is scaled where it would be too long: a small scroll moves the
// anchor by as many pixels, a long one (the thumb dragged) by its share of the whole.

export interface Anchor {
  row: number;
  /** Pixels of that row above the top edge. */
  offset: number;
}

export interface View {
  rows: number;
  /** Height of the visible part. */
  height: number;
  /** Height of a row that was not measured yet. */
  estimate: number;
  heightOf: (row: number) => number;
}

/** Firefox stops at 17.8 million pixels, Chrome at 33; much less is smooth on every machine. */
export const LONGEST = 2_000_000;
const LEAP = 3;

/** How high the scrolled content is. */
export function contentHeight(view: View): number {
  return Math.min(LONGEST, Math.max(view.height, Math.ceil(view.rows * view.estimate)));
}

function scaleOf(view: View): number {
  const way = view.rows * view.estimate - view.height;
  return way <= 0 ? 1 : (contentHeight(view) - view.height) / way;
}

/** Where the scroll bar stands for an anchor. */
export function scrollOf(anchor: Anchor, view: View): number {
  const share = anchor.offset / Math.max(1, view.heightOf(anchor.row));
  const way = (anchor.row + share) * view.estimate * scaleOf(view);
  return Math.max(0, Math.min(contentHeight(view) - view.height, way));
}

/** The anchor for a place of the scroll bar. */
export function anchorAt(scroll: number, view: View): Anchor {
  const way = scroll / (scaleOf(view) || 1) / view.estimate;
  const row = Math.max(0, Math.min(view.rows - 1, Math.floor(way)));
  return { row, offset: Math.max(0, Math.min(1, way - row)) * view.heightOf(row) };
}

/** The anchor after the scroll bar has moved: by as many pixels, or by its share where it leapt. */
export function anchorAfter(anchor: Anchor, from: number, to: number, view: View): Anchor {
  if (Math.abs(to - from) > LEAP * view.height) return clamped(anchorAt(to, view), view);
  return clamped(moved(anchor, to - from, view), view);
}

/** The anchor moved by pixels, over rows as high as they are. */
export function moved(anchor: Anchor, pixels: number, view: View): Anchor {
  let { row, offset } = anchor;
  offset += pixels;
  while (offset < 0 && row > 0) {
    row -= 1;
    offset += view.heightOf(row);
  }
  while (row < view.rows - 1 && offset >= view.heightOf(row)) {
    offset -= view.heightOf(row);
    row += 1;
  }
  return { row, offset: Math.max(0, offset) };
}

/** The anchor that has the last row at the bottom edge. */
export function atEnd(view: View): Anchor {
  let left = view.height;
  for (let row = view.rows - 1; row >= 0; row -= 1) {
    left -= view.heightOf(row);
    if (left <= 0) return { row, offset: -left };
  }
  return { row: 0, offset: 0 };
}

/** The anchor that has a row in the upper third, so that what comes before it is seen too. */
export function around(row: number, view: View): Anchor {
  const wanted = Math.max(0, Math.min(view.rows - 1, row));
  return clamped(moved({ row: wanted, offset: 0 }, -view.height / 3, view), view);
}

/** Not past the end. */
export function clamped(anchor: Anchor, view: View): Anchor {
  if (view.rows === 0) return { row: 0, offset: 0 };
  const end = atEnd(view);
  const row = Math.max(0, Math.min(anchor.row, view.rows - 1));
  const isPast = row > end.row || (row === end.row && anchor.offset > end.offset);
  return isPast ? end : { row, offset: row === anchor.row ? anchor.offset : 0 };
}

/** The rows to draw: those that are seen, and some more at both edges. */
export function drawn(anchor: Anchor, view: View, more: number): { first: number; end: number } {
  let end = anchor.row;
  let height = -anchor.offset;
  while (end < view.rows && height < view.height) {
    height += view.heightOf(end);
    end += 1;
  }
  return { first: Math.max(0, anchor.row - more), end: Math.min(view.rows, end + more) };
}
