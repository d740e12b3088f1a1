// Following a job's log: every line once, over any number of cuts. Not here: how lines look.
import { keepConnected } from "./sockets";

export interface LogLine {
  role: string;
  index: number;
  number: number;
  time: number;
  text: string;
  /** Set for a gap: so many lines were dropped here, and `text` says so. */
  gap?: boolean;
}

export interface LogListener {
  lines: (lines: LogLine[]) => void;
  connected: (connected: boolean) => void;
  ended: (code: number) => void;
}

interface LinesMessage {
  type: "lines";
  role: string;
  index: number;
  first: number;
  lines: [number, string][];
}

interface GapMessage {
  type: "gap";
  role: string;
  index: number;
  first: number;
  count: number;
}

/** Follow all tasks of an attempt, beginning with the last lines of each. */
export function followLog(jobId: string, attempt: number, last: number, listener: LogListener): () => void {
  const next: Record<string, number> = {}; // per task the number after the last line we have: the cursor

  const address = () => {
    const from = Object.keys(next).length ? JSON.stringify(next) : String(-last);
    return `/ws/jobs/${jobId}/logs/?attempt=${attempt}&from=${encodeURIComponent(from)}`;
  };
  const take = ({ role, index, first, lines }: LinesMessage) => {
    const stream = `${role}-${index}`;
    const known = Math.max(0, (next[stream] ?? first) - first);
    next[stream] = Math.max(next[stream] ?? 0, first + lines.length);
    const fresh = lines.slice(known);
    listener.lines(fresh.map(([time, text], i) => ({ role, index, number: first + known + i, time, text })));
  };
  const skip = ({ role, index, first, count }: GapMessage) => {
    const stream = `${role}-${index}`;
    if ((next[stream] ?? 0) >= first + count) return;
    next[stream] = first + count;
    const text = `${count.toLocaleString()} lines are missing here: the task wrote faster than they could be sent.`;
    listener.lines([{ role, index, number: first, time: 0, text, gap: true }]);
  };
  return keepConnected({
    address,
    state: listener.connected,
    closed: listener.ended,
    message: (data: { type: string }) => {
      if (data.type === "lines") take(data as LinesMessage);
      else if (data.type === "gap") skip(data as GapMessage);
    },
  });
}
