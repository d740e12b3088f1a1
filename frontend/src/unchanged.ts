// Parts that came from the server as they were before stay in place, with what is selected or focused in them.

/** Remembers what each part was last; tells whether a part has come as it was. Words of a time differ at every look
 *  though nothing has happened: they do not count. */
export function rememberParts<Part>(): (part: Part, html: string) => boolean {
  const shown = new Map<Part, string>(); // a handful of parts, as long as the page
  return (part, html) => {
    const fresh = html.replace(/<time[^>]*>[^<]*<\/time>/g, "");
    const isSame = shown.get(part) === fresh;
    shown.set(part, fresh);
    return isSame;
  };
}
