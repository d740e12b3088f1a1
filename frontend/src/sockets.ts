// WebSockets that come back. Not here: what their messages mean.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const SILENCE = 60_000; // the portal pings every 25 s: no message for longer means a dead connection
const FINAL = new Set([1000, 4400, 4401, 4404]);

export interface Line {
  /** Where to connect, asked each time, so that it can carry a cursor. */
  address: () => string;
  message: (data: any) => void;
  /** Called when the connection opens and when it is lost. */
  state?: (connected: boolean) => void;
  /** Called when the other side has no more to say: not tried again. */
  closed?: (code: number) => void;
}

/** Keep a connection until the other side closes it for good, or the returned function is called. */
export function keepConnected(line: Line): () => void {
  let socket: WebSocket | null = null;
  let wait = FIRST_WAIT;
  let timer = 0;
  let stopped = false;

  const listen = () => {
    clearTimeout(timer);
    timer = window.setTimeout(lost, SILENCE);
  };
  const connect = () => {
    clearTimeout(timer);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const mine = new WebSocket(`${scheme}://${location.host}${line.address()}`);
    socket = mine;
    mine.onopen = () => {
      line.state?.(true);
      listen();
    };
    mine.onmessage = (event) => {
      wait = FIRST_WAIT;
      listen();
      line.message(JSON.parse(event.data as string));
    };
    mine.onclose = (event) => {
      if (!FINAL.has(event.code)) return lost();
      stop();
      line.closed?.(event.code);
    };
  };
  /** Close the connection and try again, without waiting for a socket that does not respond. */
  const lost = () => {
    clearTimeout(timer);
    if (socket) socket.onopen = socket.onmessage = socket.onclose = null;
    socket?.close();
    socket = null;
    if (stopped) return;
    line.state?.(false);
    document.dispatchEvent(new Event("portal-silent"));
    timer = window.setTimeout(connect, wait * (0.5 + Math.random()));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  };
  const gone = () => socket && lost();
  const back = () => {
    wait = FIRST_WAIT;
    if (!stopped && !socket) connect();
  };
  const stop = () => {
    stopped = true;
    window.removeEventListener("offline", gone);
    window.removeEventListener("online", back);
    lost();
  };
  window.addEventListener("offline", gone);
  window.addEventListener("online", back);
  connect();
  return stop;
}
