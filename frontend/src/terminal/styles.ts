// xterm.js writes style elements and style attributes, which the portal's content security policy forbids. What scripts
// do to style sheets and to the styles of elements is allowed, and is the same thing: so on this page the first become
// the second.

/** Call it before a terminal is made. */
export function keepToThePolicy(): void {
  const create = document.createElement.bind(document) as (name: string, options?: ElementCreationOptions) => HTMLElement;
  document.createElement = ((name: string, options?: ElementCreationOptions) => (name === "style" ? sheet() : create(name, options))) as typeof document.createElement;
  const set = Element.prototype.setAttribute;
  HTMLSpanElement.prototype.setAttribute = function (name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else set.call(this, name, value);
  };
}

/** A node that stands for a style element: its text is a style sheet of the document. */
function sheet(): Node {
  const made = new CSSStyleSheet();
  document.adoptedStyleSheets.push(made);
  const stand = document.createComment("");
  let text = "";
  const property = { get: () => text, set: (value: string) => made.replaceSync((text = value)) };
  Object.defineProperty(stand, "textContent", property);
  Object.defineProperty(stand, "innerText", property);
  return stand;
}
