// The page of a session: with `?open=1` it opens it once it is ready. It leaves no entry in the history, so that the
// browser's way back does not lead into the session again.

function open(): void {
  const link = document.querySelector<HTMLAnchorElement>("a[data-opens-session]");
  if (!link) return;
  delete link.dataset.opensSession;
  location.replace(link.href);
}

document.addEventListener("htmx:afterSettle", open);
open();
