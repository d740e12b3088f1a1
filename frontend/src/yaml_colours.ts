// YAML in colours, for reading only: keys, texts, numbers and comments of one line at a time. It understands no YAML; what
// it takes for something else is merely in another colour.

const LINE = /^(\s*(?:- )?)([A-Za-z_][\w./-]*)(:)(?=\s|$)/;
const VALUE = /("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|(?<=^|[\s,{[:])(-?\d+(?:\.\d+)?)(?=$|[\s,}\]])|(?<=^|\s)(#.*)$|(?<=[{,]\s?)([A-Za-z_][\w./-]*)(?=:)|\b(true|false|null)\b/g;

function piece(text: string, kind: string): Node {
  const span = document.createElement("span");
  span.className = `yaml-${kind}`;
  span.textContent = text;
  return span;
}

export function colourYaml(text: string): Node[] {
  const nodes: Node[] = [];
  for (const line of text.split("\n")) {
    let rest = line;
    const key = LINE.exec(line);
    if (key) {
      nodes.push(document.createTextNode(key[1] ?? ""), piece(key[2] ?? "", "key"), document.createTextNode(":"));
      rest = line.slice(key[0].length);
    }
    nodes.push(...values(rest), document.createTextNode("\n"));
  }
  nodes.pop();
  return nodes;
}

function values(text: string): Node[] {
  const nodes: Node[] = [];
  let at = 0;
  for (const match of text.matchAll(VALUE)) {
    if (match.index > at) nodes.push(document.createTextNode(text.slice(at, match.index)));
    const kind = match[1] ? "text" : match[2] ? "number" : match[3] ? "comment" : match[4] ? "key" : "number";
    nodes.push(piece(match[0], kind));
    at = match.index + match[0].length;
  }
  if (at < text.length) nodes.push(document.createTextNode(text.slice(at)));
  return nodes;
}
