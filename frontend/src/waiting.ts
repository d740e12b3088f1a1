// The page that says the portal is away comes back by itself: it asks until the portal is well, then loads what was wanted.

const EACH = 4_000;

const place = document.querySelector<HTMLElement>("[data-waits-for-portal]");
if (place) {
  const look = async () => {
    try {
      const answer = await fetch("/readyz", { cache: "no-store" });
      if (answer.ok) location.replace(location.href); // not reload(): a form would be sent again
    } catch {
      // Not even the web process answers: ask again.
    }
  };
  setInterval(() => void look(), EACH);
  place.hidden = false;
}
