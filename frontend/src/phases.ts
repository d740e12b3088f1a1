// The words of phases, as the server's `phase_badge` says them.

const WORDS: Record<string, string> = {
  QUEUED: "Queued",
  STARTING: "Starting",
  RUNNING: "Running",
  STOPPING: "Stopping",
  SUCCEEDED: "Succeeded",
  FAILED: "Failed",
  STOPPED: "Stopped",
};

export function wordOf(phase: string): string {
  return WORDS[phase] ?? phase;
}
