// Talks to the server of the run: with its token where it wants one, and nobody else.

const KEY = "gem-bundle-token";
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;

export class NeedsToken extends Error {}

export class Refused extends Error {
  constructor(status, content) {
    super(content.error ?? `The server answered ${status}.`);
    this.diagnostics = content.diagnostics ?? [];
  }
}

// Behind `#token=` it is never sent by the browser itself; here it doesn't stay in the address either.
const given = /^#token=(.+)$/.exec(location.hash);
if (given) {
  sessionStorage.setItem(KEY, decodeURIComponent(given[1]));
  history.replaceState(null, "", location.pathname);
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (answer.status === 401) throw new NeedsToken();
  if (!answer.ok) throw new Refused(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

export async function get(path) {
  return (await ask(path)).json();
}

export async function post(path, content) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(content) })).json();
}

// Calls `on(event, content)` for each event, and `lost(pause)` when the connection is gone and is tried again.
export async function listen({ on, lost, refused, isOver }) {
  let pause = FIRST_PAUSE;
  while (!isOver()) {
    try {
      const answer = await ask("/api/v1/events");
      pause = FIRST_PAUSE;
      await read(answer.body.getReader(), on);
    } catch (error) {
      if (error instanceof NeedsToken) {
        refused();
        return;
      }
    }
    if (isOver()) return;
    lost(pause);
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function read(reader, on) {
  const decoder = new TextDecoder();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += decoder.decode(value, { stream: true });
    const parts = waiting.split("\n\n");
    waiting = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      if (name && data) on(name, JSON.parse(data));
    }
  }
}
