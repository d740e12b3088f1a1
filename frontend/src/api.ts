// The portal's API as pages use it. Nothing here knows what is shown.

export interface Job {
  id: string;
  name: string;
  owner: string;
  phase: string;
  attempt: number;
  message: string;
  decided_at: string | null;
}

/** What is wrong with one field of what was sent. */
export interface FieldFault {
  field: string;
  code: string;
  message: string;
  remedy: string;
  value: string;
}

/** An answer other than success. `message` is a sentence for people; status 0: there was no answer. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly remedy: string,
    readonly code = "",
    readonly errors: FieldFault[] = [],
  ) {
    super(detail);
  }

  /** Of an answer's status and body. */
  static of(status: number, text: string): Refusal {
    if (status === 0) return new Refusal(0, "The portal does not respond.", "Check that it is running. This page retries automatically.");
    try {
      const problem = JSON.parse(text) as { detail?: string; remedy?: string; code?: string; errors?: FieldFault[] };
      const detail = problem.detail ?? `The portal responded with status ${status}.`;
      return new Refusal(status, detail, problem.remedy ?? "", problem.code, problem.errors);
    } catch {
      return new Refusal(status, `The portal responded with status ${status}.`, "");
    }
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

export async function remove(path: string): Promise<null> {
  return ask<null>(path, { method: "DELETE", headers: { "X-CSRFToken": csrfToken() } });
}

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, { ...init, credentials: "same-origin" });
  } catch {
    document.dispatchEvent(new Event("portal-silent"));
    throw Refusal.of(0, "");
  }
  if (response.status === 401) location.assign(`/accounts/login/?next=${encodeURIComponent(location.pathname)}`);
  const text = await response.text();
  if (response.ok) return (text ? JSON.parse(text) : null) as T;
  throw Refusal.of(response.status, text);
}

function csrfToken(): string {
  return document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content ?? "";
}
