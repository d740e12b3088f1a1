// Numbers and times as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(amount: number): string {
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${amount.toFixed(amount < 10 && unit > 0 ? 1 : 0)} ${UNITS[unit]}`;
}

export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** From one time to another, or until now. */
export function between(start: string | null, end: string | null): string {
  if (!start) return "";
  return duration((end ? Date.parse(end) : Date.now()) - Date.parse(start));
}

export function moment(time: string): HTMLElement {
  const element = document.createElement("time");
  element.dateTime = time;
  const date = new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  element.textContent = today ? date.toLocaleTimeString() : date.toLocaleString();
  element.title = date.toLocaleString();
  return element;
}

export function strategyWords(strategy: string): string {
  return strategy.replaceAll("_", " ");
}

/** `1 ps, 2 workers` */
export function shape(roles: Record<string, { replicas?: number }>): string {
  return Object.entries(roles)
    .map(([role, { replicas = 1 }]) => `${replicas} ${role === "worker" && replicas !== 1 ? "workers" : role}`)
    .join(", ");
}
