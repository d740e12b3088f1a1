// Addresses in a line of a log. A script writes what it likes: only what begins with http:// or https:// leads anywhere.

export interface Link {
  start: number;
  end: number;
  href: string;
}

// Spaces, quotes, angle brackets, control characters and those that turn the direction of writing end an address.
const ADDRESS = /\bhttps?:\/\/[^\s<>"'`\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]{1,2000}/gi;
const PAIRS: Record<string, string> = { ")": "(", "]": "[", "}": "{" };
const MOST = 20;

/** The addresses in a text, in their order. Punctuation at the end belongs to the sentence around it. */
export function linksIn(text: string): Link[] {
  const links: Link[] = [];
  for (const found of text.matchAll(ADDRESS)) {
    const words = withoutEnd(found[0]);
    const href = hrefOf(words);
    if (href) links.push({ start: found.index, end: found.index + words.length, href });
    if (links.length === MOST) break;
  }
  return links;
}

function withoutEnd(words: string): string {
  let end = words.length;
  while (end > 0) {
    const last = words[end - 1] ?? "";
    const opening = PAIRS[last];
    if (/[.,;:!?…*_~|]/.test(last)) end -= 1;
    else if (opening && count(words, opening, end) < count(words, last, end)) end -= 1;
    else break;
  }
  return words.slice(0, end);
}

function count(words: string, letter: string, end: number): number {
  return words.slice(0, end).split(letter).length - 1;
}

/** Null: no address, or one that hides in front of an @ where it leads. */
function hrefOf(words: string): string | null {
  try {
    const url = new URL(words);
    return /^https?:$/.test(url.protocol) && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

/** Runs cut where addresses begin and end; each piece with the address that it belongs to. */
export function linked<R extends { text: string }>(runs: readonly R[]): { run: R; link: Link | null }[] {
  const text = runs.map((run) => run.text).join("");
  const links = text.includes("://") ? linksIn(text) : [];
  if (!links.length) return runs.map((run) => ({ run, link: null }));
  const cut: { run: R; link: Link | null }[] = [];
  let start = 0;
  for (const run of runs) {
    const end = start + run.text.length;
    let at = start;
    while (at < end) {
      const next = links.find((link) => link.end > at);
      const link = next && next.start <= at ? next : null;
      const until = Math.min(end, link ? link.end : (next?.start ?? end));
      cut.push({ run: { ...run, text: run.text.slice(at - start, until - start) }, link });
      at = until;
    }
    start = end;
  }
  return cut;
}
