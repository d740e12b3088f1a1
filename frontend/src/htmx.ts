// htmx as every page uses it: with the CSRF token, never with `eval`, and plain about what went wrong.
import htmx from "htmx.org";
import { toast } from "./toast";

Object.assign(htmx.config, { allowEval: false, includeIndicatorStyles: false, historyCacheSize: 0, selfRequestsOnly: true });

// A request that a newer one replaces is no error, yet htmx writes it into the console as two. It writes what has `error`,
// after it has shown it to the logger.
htmx.logger = (_: Element, event: string, detail: { error?: string }) => {
  if (event === "htmx:sendAbort" || event === "htmx:afterRequest") delete detail.error;
};

interface HtmxEvent {
  headers: Record<string, string>;
  xhr: XMLHttpRequest;
  shouldSwap: boolean;
  requestConfig?: { verb: string };
}

function on(name: string, act: (detail: HtmxEvent) => void): void {
  document.addEventListener(`htmx:${name}`, (event) => act((event as CustomEvent<HtmxEvent>).detail));
}

on("configRequest", ({ headers }) => {
  const token = document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content;
  if (token) headers["X-CSRFToken"] = token;
});
on("beforeSwap", (detail) => {
  // A session that ended answers with the page to sign in: that is a place to go, not a part of this page.
  if (!new URL(detail.xhr.responseURL || location.href).pathname.startsWith("/accounts/login/")) return;
  detail.shouldSwap = false;
  location.assign(`/accounts/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
});
on("responseError", ({ xhr }) => {
  const said = xhr.getResponseHeader("Content-Type")?.startsWith("text/plain") ? xhr.responseText.slice(0, 500) : "";
  toast(said || `The portal responded with status ${xhr.status}. Reload the page.`, "error");
});
on("sendError", ({ requestConfig }) => {
  const isRead = requestConfig?.verb === "get";
  document.dispatchEvent(new CustomEvent("portal-silent", { detail: isRead ? "part" : "" }));
  if (!isRead) toast("The portal does not respond: nothing was sent. Try again when it is back.", "error");
});

export { htmx };
