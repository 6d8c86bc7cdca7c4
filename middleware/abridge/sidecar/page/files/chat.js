// @ts-check
/**
 * The chunks of a Chat Completions stream. This API has one field for reasoning, and a summary
 * comes in it, in the raw reasoning's place. Where both are shown, they come in a field each: raw in
 * `reasoning`, the summary in `reasoning_content`.
 *
 * @typedef {import("./turn.js").Turn} Turn
 */
import { called, incomplete, summaryFailed } from "./responses.js";
import { sentence } from "./words.js";

const BEFORE_TITLE = /\n(?=\*\*[^*\n]+\*\*[ \t]*(?:\n|$))/;
const BEGUN = /\n(\*(\*[^*\n]*(\*\*?[ \t]*)?)?)?$/;

export class Chunks {
  /** @param {Turn} turn */
  constructor(turn) {
    this.#turn = turn;
    turn.onePlace = true;
  }

  #turn;
  #fields = { reasoning: "", reasoning_content: "" };
  /** The end of the summary so far, while it may be the beginning of a title. */
  #begun = "";
  /** @type {Map<number, {name: string, given: string}>} */
  #calls = new Map();
  #finish = "";

  /** @param {any} chunk */
  see(chunk) {
    if (chunk.error) {
      const message = typeof chunk.error === "string" ? chunk.error : chunk.error.message;
      return this.#turn.end("failed", `The answer failed: ${sentence(message)}`);
    }
    this.#turn.usage = chunk.usage ?? this.#turn.usage;
    const choice = chunk.choices?.find((/** @type {any} */ one) => (one.index ?? 0) === 0);
    if (choice === undefined) return;
    this.#delta(choice.delta ?? {});
    this.#finish = choice.finish_reason ?? this.#finish;
  }

  /** At `[DONE]`, or where the stream ends well without it. */
  done() {
    const turn = this.#turn;
    if (turn.over) return;
    this.#settle();
    if (turn.onePlace && turn.parts.length > 0 && turn.usage !== null && !turn.usage.reasoning_summary) {
      turn.unsummarize(this.#fields.reasoning_content || this.#fields.reasoning);
      turn.summaryNotes.push("No summary was made for this answer: this is the model’s own reasoning.");
    }
    for (const call of this.#calls.values()) {
      turn.notes.push(`The model calls a tool: ${called(call.name, call.given)}`);
    }
    if (this.#finish === "length") turn.end("incomplete", incomplete("max_output_tokens"));
    else if (this.#finish === "content_filter") turn.end("incomplete", incomplete("content_filter"));
    else if (this.#finish === "") turn.end("failed", "The answer failed: it broke off before it was complete.");
    else turn.end("done");
  }

  /** @param {any} delta */
  #delta(delta) {
    const turn = this.#turn;
    for (const field of /** @type {const} */ (["reasoning", "reasoning_content"])) {
      if (typeof delta[field] === "string" && delta[field] !== "") this.#reason(field, delta[field]);
    }
    if (delta.summary_error) turn.failures.summary = summaryFailed(delta.summary_error);
    for (const call of delta.tool_calls ?? []) this.#call(call);
    const thought = joined(delta.content, "thinking");
    if (thought !== "") this.#reason("reasoning_content", thought);
    const text = joined(delta.content, "text") + (delta.refusal ?? "");
    if (text !== "") {
      turn.endThinking();
      this.#settle();
      turn.say(text);
    }
  }

  /** @param {"reasoning" | "reasoning_content"} field @param {string} text */
  #reason(field, text) {
    const turn = this.#turn;
    this.#fields[field] += text;
    const both = this.#fields.reasoning !== "" && this.#fields.reasoning_content !== "";
    if (both && turn.onePlace) {
      turn.unsummarize(this.#fields.reasoning);
      this.#begun = "";
      this.#summarize(this.#fields.reasoning_content);
    } else if (both && field === "reasoning") {
      turn.think(text);
    } else {
      this.#summarize(text);
    }
  }

  /** Each title begins a part, once its line is whole. @param {string} more */
  #summarize(more) {
    const text = this.#begun + more;
    const known = text.replace(BEGUN, "");
    this.#begun = text.slice(known.length);
    const { parts } = this.#turn;
    known.split(BEFORE_TITLE).forEach((piece, index) => {
      if (piece === "") return;
      if (index > 0) this.#end();
      const open = index > 0 ? undefined : parts.at(-1);
      this.#turn.write(open?.key ?? String(parts.length), piece);
    });
  }

  /** Nothing more comes for the part that is open, though it may for another. */
  #settle() {
    if (this.#begun.trim() !== "") this.#summarize("\n");
    this.#end();
  }

  #end() {
    const part = this.#turn.parts.at(-1);
    if (part !== undefined) part.ended ??= this.#turn.now();
  }

  /** @param {any} fragment */
  #call(fragment) {
    const call = this.#calls.get(fragment.index ?? 0) ?? { name: "", given: "" };
    call.name ||= fragment.function?.name ?? fragment.custom?.name ?? "a tool";
    call.given += fragment.function?.arguments ?? fragment.custom?.input ?? "";
    this.#calls.set(fragment.index ?? 0, call);
  }
}

/** What of a content is text, or thought: a few servers have it in a list. @param {any} content @param {"text" | "thinking"} kind @returns {string} */
function joined(content, kind) {
  if (!Array.isArray(content)) return kind === "text" ? (content ?? "") : "";
  return content.map((part) => (typeof part[kind] === "string" ? part[kind] : joined(part[kind], "text"))).join("");
}
