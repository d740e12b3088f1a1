// The portal's API as pages use it. Nothing here knows what is shown.

export interface Progress {
  step?: number;
  total?: number;
  epoch?: number;
}

export interface Job {
  id: string;
  name: string;
  namespace_slug: string;
  owner: string;
  engine: string;
  strategy: string;
  phase: string;
  wanted: string;
  attempt: number;
  reason: string;
  message: string;
  remedy: string;
  position: number | null;
  progress: Progress | null;
  model: string | null;
  created_at: string;
  queued_at: string | null;
  started_at: string | null;
  decided_at: string | null;
  spec: { roles: Record<string, { replicas?: number; cpu?: number; memory?: number; gpus?: number }> };
}

export interface Task {
  role: string;
  index: number;
  phase: string;
  state: string;
  reason: string;
  message: string;
  exit_code: number | null;
  restarts: number;
  node: string;
  progress: Progress | null;
  peak_memory: number | null;
}

export interface ModelFile {
  path: string;
  size: number;
  url: string;
}

export interface Model {
  id: string;
  name: string;
  size: number;
  files: ModelFile[];
}

/** An answer other than success. `message` is a sentence for people. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly remedy: string,
  ) {
    super(detail);
  }
}

export async function get<T>(path: string): Promise<T> {
  return ask<T>(path, { method: "GET" });
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = {
    "Content-Type": "application/json",
    "X-CSRFToken": csrfToken(),
    "Idempotency-Key": crypto.getRandomValues(new Uint32Array(4)).join("-"),
  };
  return ask<T>(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, { ...init, credentials: "same-origin" });
  } catch {
    throw new Refusal(0, "The portal does not answer.", "Is it running? This page tries again by itself.");
  }
  if (response.status === 401) location.assign(`/accounts/login/?next=${encodeURIComponent(location.pathname)}`);
  const text = await response.text();
  if (response.ok) return (text ? JSON.parse(text) : null) as T;
  throw refusalOf(response.status, text);
}

function refusalOf(status: number, text: string): Refusal {
  try {
    const problem = JSON.parse(text) as { detail?: string; remedy?: string };
    return new Refusal(status, problem.detail ?? `The portal answered ${status}.`, problem.remedy ?? "");
  } catch {
    return new Refusal(status, `The portal answered ${status}.`, "");
  }
}

function csrfToken(): string {
  return document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content ?? "";
}
