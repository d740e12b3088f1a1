// Passkeys: hands what the portal asks to the browser, and its answer back in a form.

type Json = Record<string, unknown>;
type Described = { id: string; type: PublicKeyCredentialType; transports?: AuthenticatorTransport[] };

function bytes(text: string): ArrayBuffer {
  const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (one) => one.charCodeAt(0)).buffer;
}

function text(buffer: ArrayBuffer | null): string | undefined {
  if (!buffer) return undefined;
  const plain = Array.from(new Uint8Array(buffer), (one) => String.fromCharCode(one)).join("");
  return btoa(plain).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

const described = (list: unknown) => ((list as Described[] | undefined) ?? []).map((one) => ({ ...one, id: bytes(one.id) }));

/** The options that the page holds, or else those that the portal gives at the address. */
async function options(form: HTMLFormElement): Promise<Json> {
  const held = document.getElementById("passkey-options");
  if (!form.dataset.passkeyOptions) return JSON.parse(held?.textContent ?? "{}");
  const answer = await fetch(form.dataset.passkeyOptions, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(answer.status === 429 ? "Too many attempts. Wait a minute." : "The portal did not answer. Try again.");
  return answer.json();
}

async function create(form: HTMLFormElement): Promise<Json> {
  const asked = ((await options(form)).creation_options as Json).publicKey as Json;
  const selection = { ...(asked.authenticatorSelection as Json) };
  const alone = form.querySelector<HTMLInputElement>("input[name=passwordless]")?.checked ?? false;
  selection.residentKey = alone ? "required" : "discouraged";
  selection.requireResidentKey = alone;
  if (alone) selection.userVerification = "required";
  const user = asked.user as Json;
  const publicKey = {
    ...asked,
    challenge: bytes(asked.challenge as string),
    user: { ...user, id: bytes(user.id as string) },
    excludeCredentials: described(asked.excludeCredentials),
    authenticatorSelection: selection,
  } as unknown as PublicKeyCredentialCreationOptions;
  const made = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential;
  const response = made.response as AuthenticatorAttestationResponse;
  return {
    ...facts(made),
    response: { clientDataJSON: text(response.clientDataJSON), attestationObject: text(response.attestationObject) },
  };
}

async function use(form: HTMLFormElement): Promise<Json> {
  const asked = ((await options(form)).request_options as Json).publicKey as Json;
  const publicKey = {
    ...asked,
    challenge: bytes(asked.challenge as string),
    allowCredentials: described(asked.allowCredentials),
  } as unknown as PublicKeyCredentialRequestOptions;
  const found = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential;
  const response = found.response as AuthenticatorAssertionResponse;
  return {
    ...facts(found),
    response: {
      clientDataJSON: text(response.clientDataJSON),
      authenticatorData: text(response.authenticatorData),
      signature: text(response.signature),
      userHandle: text(response.userHandle),
    },
  };
}

function facts(one: PublicKeyCredential): Json {
  const extensions = one.getClientExtensionResults();
  return { id: one.id, rawId: text(one.rawId), type: one.type, clientExtensionResults: { credProps: extensions.credProps ?? {} } };
}

function words(error: unknown): string {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError") return "Cancelled, timed out, or there is no matching passkey here. Try again, or use another way.";
  if (name === "InvalidStateError") return "This device already has a passkey of your account.";
  if (name === "SecurityError") return "Passkeys do not work at this address. Open the portal at its own name, over HTTPS.";
  if (name === "NotSupportedError" || name === "ConstraintError") return "This device cannot make such a passkey. Try without sign-in by passkey alone.";
  return error instanceof Error ? error.message : "The passkey could not be used. Try again.";
}

for (const form of document.querySelectorAll<HTMLFormElement>("form[data-passkey]")) {
  const button = form.querySelector<HTMLButtonElement>("button[type=submit]");
  const problem = form.querySelector<HTMLElement>("[data-passkey-problem]");
  const answer = form.querySelector<HTMLInputElement>("input[name=credential]");
  if (!button || !problem || !answer) continue;
  if (!window.PublicKeyCredential) {
    button.disabled = true;
    problem.textContent = "This browser does not support passkeys here.";
    problem.hidden = false;
    continue;
  }
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!form.reportValidity()) return;
    button.disabled = true;
    problem.hidden = true;
    try {
      answer.value = JSON.stringify(await (form.dataset.passkey === "create" ? create(form) : use(form)));
      form.submit();
    } catch (error) {
      problem.textContent = words(error);
      problem.hidden = false;
      button.disabled = false;
      button.focus();
    }
  });
}
