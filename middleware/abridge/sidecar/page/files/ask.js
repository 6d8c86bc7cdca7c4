// @ts-check
/** Asks the server this page came from, as any client does, and reads its answer as it streams. */
import { Chunks } from "./chat.js";
import { see } from "./responses.js";
import { Events } from "./sse.js";
import { Refused, refusal, unreachable } from "./words.js";

/** @typedef {{api: string, model: string, question: string, style: string, key: string, id: string}} Question */

export const BASE = new URL("v1/", document.baseURI).href;

/** @param {string} key @returns {Record<string, string>} */
function credential(key) {
  return key === "" ? {} : { authorization: `Bearer ${key}` };
}

/** A new one; `crypto.randomUUID` is only there over https and on this machine. */
export function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Question} question */
export function bodyOf({ api, model, question, style }) {
  const common = { model, reasoning: { summary: style }, stream: true };
  if (api === "responses") return { ...common, input: question };
  const messages = [{ role: "user", content: question }];
  return { ...common, messages, stream_options: { include_usage: true } };
}

/**
 * Fills `turn` until its end. Raises Refused where there is no answer.
 * @param {Question} question
 * @param {import("./turn.js").Turn} turn
 * @param {AbortSignal} signal
 */
export async function ask(question, turn, signal) {
  const path = question.api === "responses" ? "responses" : "chat/completions";
  try {
    const response = await fetch(BASE + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-request-id": question.id,
        "x-abridge-usage": "merged",
        ...credential(question.key),
      },
      body: JSON.stringify(bodyOf(question)),
      signal,
    });
    if (!response.ok || response.body === null) throw await refusal(response, question.api);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      throw new Refused("The model’s server did not stream its answer.");
    }
    await read(response.body, question.api, turn);
  } catch (error) {
    if (signal.aborted) return turn.end("stopped", "You stopped it.");
    if (error instanceof Refused) throw error;
    if (turn.state === "asking") throw unreachable();
    turn.end("failed", "The answer failed: the connection broke before it was complete.");
  }
  turn.end("failed", "The answer failed: it broke off before it was complete.");
}

/**
 * @param {ReadableStream<Uint8Array>} stream @param {string} api
 * @param {import("./turn.js").Turn} turn
 */
async function read(stream, api, turn) {
  const events = new Events();
  const chunks = api === "chat" ? new Chunks(turn) : null;
  const reader = stream.getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    for (const data of events.feed(piece.value)) {
      const event = parsed(data);
      if (turn.over) continue;
      if (event === null) chunks?.done();
      else if (chunks !== null) chunks.see(event);
      else see(turn, event);
    }
  }
  chunks?.done();
}

/** An event's object; null for what is none, as `[DONE]`. @param {string} data @returns {any} */
function parsed(data) {
  return data.startsWith("{") ? JSON.parse(data) : null;
}

/** The names of the models there are. Raises Refused. @param {string} key @returns {Promise<string[]>} */
export async function models(key) {
  const response = await fetch(`${BASE}models`, { headers: credential(key) }).catch(() => null);
  if (response === null) throw unreachable();
  if (!response.ok) throw await refusal(response, "models");
  const listed = await response.json().catch(() => null);
  const names = Array.isArray(listed?.data) ? listed.data.map((/** @type {any} */ model) => model?.id) : [];
  return names.filter((/** @type {unknown} */ name) => typeof name === "string");
}
