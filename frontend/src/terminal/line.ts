// The WebSocket of a terminal (docs/protocols.md, section 7): bytes in both directions, each side sending no more than
// the other has room for. Not here: what they look like (pages/terminal.ts).

const WINDOW = 128 * 1024;
const LEAST = 1024;
const LONGEST = 16 * 1024;
const SAID_AFTER = 32 * 1024;

const cost = (size: number) => Math.max(LEAST, size);

export interface Ears {
  /** The task has been asked for a shell. */
  waiting: () => void;
  open: () => void;
  /** Call `read` when it is shown. */
  printed: (bytes: Uint8Array, read: () => void) => void;
  over: (why: string) => void;
}

export class TerminalLine {
  private readonly socket: WebSocket;
  private readonly typed: (Uint8Array<ArrayBuffer> | string)[] = [];
  private unread = 0;
  private unsaid = 0;
  private isOpen = false;
  private why = "";

  constructor(address: string, private readonly ears: Ears) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}${address}`);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = (event) => this.hear(event.data as string | ArrayBuffer);
    this.socket.onclose = () => this.over();
  }

  send(bytes: Uint8Array<ArrayBuffer>): void {
    for (let at = 0; at < bytes.length; at += LONGEST) this.typed.push(bytes.slice(at, at + LONGEST));
    this.sendMore();
  }

  resize(rows: number, columns: number): void {
    this.typed.push(JSON.stringify({ rows, columns }));
    this.sendMore();
  }

  end(): void {
    this.socket.close(1000);
  }

  private sendMore(): void {
    while (this.isOpen && this.typed.length && this.unread < WINDOW) {
      const next = this.typed.shift()!;
      this.unread += cost(next.length);
      this.socket.send(next);
    }
  }

  private hear(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      const size = cost(data.byteLength);
      this.ears.printed(new Uint8Array(data), () => this.sayRead(size));
      return;
    }
    const said = JSON.parse(data);
    if (said.state === "waiting") this.ears.waiting();
    if (said.read) this.unread -= said.read;
    if (said.state === "open") {
      this.isOpen = true;
      this.ears.open();
    }
    if (said.ended) this.why = said.ended;
    this.sendMore();
  }

  private sayRead(size: number): void {
    this.unsaid += size;
    if (this.unsaid < SAID_AFTER || this.socket.readyState !== WebSocket.OPEN) return;
    this.socket.send(JSON.stringify({ read: this.unsaid }));
    this.unsaid = 0;
  }

  private over(): void {
    this.isOpen = false;
    this.typed.length = 0;
    this.ears.over(this.why || "The connection to the portal was lost.");
  }
}
