// @ts-check
/** The events of a Responses stream. @typedef {import("./turn.js").Turn} Turn */
import { sentence } from "./words.js";

/** @param {Turn} turn @param {any} event */
export function see(turn, event) {
  const item = event.item_id ?? event.output_index;
  const key = `${item} ${event.summary_index}`;
  switch (event.type) {
    case "response.reasoning_text.delta":
      return turn.think(event.delta, item);
    case "response.reasoning_text.done":
      return turn.endThinking();
    case "response.reasoning_summary_part.added":
      return turn.part(key);
    case "response.reasoning_summary_text.delta":
      return turn.write(key, event.delta);
    case "response.reasoning_summary_part.done":
      turn.part(key).ended ??= turn.now();
      return;
    case "response.output_text.delta":
    case "response.refusal.delta":
      return turn.say(event.delta, item);
    case "response.output_item.done":
      return itemDone(turn, event.item ?? {});
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      return ended(turn, event.type, event.response ?? {});
    case "error":
      return turn.end("failed", `The answer failed: ${sentence(event.message)}`);
  }
}

/** @param {Turn} turn @param {any} item */
function itemDone(turn, item) {
  if (item.type === "reasoning") {
    turn.endThinking();
    if (item.summary_error) turn.failures.summary = summaryFailed(item.summary_error);
  } else if (item.type?.endsWith("_call")) {
    turn.notes.push(`The model calls a tool: ${called(item.name ?? item.type, item.arguments ?? item.input)}`);
  }
}

/** @param {Turn} turn @param {string} type @param {any} response */
function ended(turn, type, response) {
  turn.usage = response.usage ?? null;
  if (type === "response.completed") return turn.end("done");
  if (type === "response.incomplete") {
    return turn.end("incomplete", incomplete(response.incomplete_details?.reason));
  }
  turn.end("failed", `The answer failed: ${sentence(response.error?.message)}`);
}

/** @param {any} error */
export function summaryFailed(error) {
  return `The summary failed: ${sentence(error.message ?? error.code)} The answer is the same without it.`;
}

/** @param {string | undefined} reason */
export function incomplete(reason) {
  if (reason === "max_output_tokens") return "The answer is cut short: the model’s token limit was reached.";
  if (reason === "content_filter") return "The answer is cut short by a content filter.";
  return `The answer is incomplete: ${reason ?? "no reason was given"}.`;
}

/** @param {string} name @param {unknown} given */
export function called(name, given) {
  return typeof given === "string" && given !== "" ? `${name} ${given}` : name;
}
