// Building elements. Text is always text here: nothing that people or their scripts wrote is read as markup.

type Child = Node | string | null | undefined | false;

export function el(tag: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) if (child) element.append(child);
}

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`This page has no #${id}.`);
  return found;
}

/** Replace the content only where it differs, so that focus and selection survive refreshing. */
export function fill(element: Element, ...children: Child[]): void {
  const fresh = element.cloneNode(false) as Element;
  append(fresh, children);
  if (fresh.innerHTML === element.innerHTML) return;
  const focused = document.activeElement instanceof HTMLAnchorElement ? document.activeElement.href : "";
  element.replaceChildren(...fresh.childNodes);
  if (!focused || document.activeElement !== document.body) return;
  for (const link of element.querySelectorAll("a")) if (link.href === focused) link.focus();
}
