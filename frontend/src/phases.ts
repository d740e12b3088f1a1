// How a phase looks: a word and a shape, so that colour says nothing alone.

interface Look {
  word: string;
  color: string;
  shape: string;
}

const LOOKS: Record<string, Look> = {
  QUEUED: { word: "Waiting", color: "azure", shape: "M6 3h12M6 21h12M7 3v3l5 6 5-6V3M7 21v-3l5-6 5 6v3" },
  PENDING: { word: "Waiting", color: "azure", shape: "M6 3h12M6 21h12M7 3v3l5 6 5-6V3M7 21v-3l5-6 5 6v3" },
  STARTING: { word: "Starting", color: "blue", shape: "M12 3v5M12 16v5M3 12h5M16 12h5" },
  RUNNING: { word: "Running", color: "blue", shape: "M7 4v16l13-8z" },
  STOPPING: { word: "Stopping", color: "orange", shape: "M8 5v14M16 5v14" },
  SUCCEEDED: { word: "Succeeded", color: "green", shape: "M4 13l5 5L20 6" },
  FAILED: { word: "Failed", color: "red", shape: "M6 6l12 12M18 6L6 18" },
  STOPPED: { word: "Stopped", color: "secondary", shape: "M5 5h14v14H5z" },
  RELEASED: { word: "Released", color: "secondary", shape: "M5 5h14v14H5z" },
};

const SVG = "http://www.w3.org/2000/svg";

export function wordOf(phase: string): string {
  return LOOKS[phase]?.word ?? phase;
}

export function badge(phase: string): HTMLElement {
  const look = LOOKS[phase] ?? { word: phase, color: "secondary", shape: "M5 12h14" };
  const element = document.createElement("span");
  element.className = `phase phase-${look.color}`;
  const icon = document.createElementNS(SVG, "svg");
  icon.setAttribute("viewBox", "0 0 24 24");
  icon.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", look.shape);
  icon.append(path);
  element.append(icon, look.word);
  return element;
}
