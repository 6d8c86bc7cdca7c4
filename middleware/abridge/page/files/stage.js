// @ts-check
/** Shows one exchange while it goes on: its texts, its times, its bill and its state in a word. */
import * as bill from "./bill.js";
import { by, make, setText } from "./dom.js";
import { Flow } from "./flow.js";
import { Summary } from "./summary.js";
import { timeline } from "./timeline.js";
import { countOf, inSeconds } from "./words.js";

/** @typedef {import("./turn.js").Turn} Turn */

const REDRAWN = 250; // milliseconds, at least, between two pictures of the times

const CLEARED = ["thinking", "summary", "answer", "now", "bill", "thinking-figure", "summary-figure", "answer-figure", "bill-figure"];

const BILL = by("bill-note").textContent;

const ONE_PLACE =
  "Chat Completions has one place for reasoning. A summary comes there instead of what the model thinks, so that is not to be seen on this API. Ask by Responses to see both.";

export class Stage {
  /** @param {Turn} turn */
  constructor(turn) {
    this.turn = turn;
    this.clear();
    this.#summary = new Summary(by("summary"), (words) => (by("said").textContent = words));
  }

  /** As if nothing had been asked, where nothing was answered. */
  clear() {
    for (const id of CLEARED) by(id).replaceChildren();
    by("bill-note").textContent = BILL;
    delete document.body.dataset.state;
    by("state").textContent = inWords(this.turn);
  }

  /** Abridge's own record of it, once it is made. @type {any} */
  record = null;
  summarizer = "";
  #thinking = new Flow(by("thinking"));
  #answer = new Flow(by("answer"));
  #summary;
  #drawn = -Infinity;

  show() {
    const { turn } = this;
    const unseen = turn.thinking === "" ? this.#whyUnseen() : "";
    this.#thinking.show(unseen || turn.thinking);
    by("summary-name").textContent = isSummary(turn) ? "Summary" : "Reasoning, as clients get it";
    by("thinking").classList.toggle("note", unseen !== "");
    this.#summary.show(turn.parts, turn.summaryNotes);
    this.#answer.show(turn.answer);
    this.#notes();
    this.#figures();
    this.#times();
    bill.show(by("bill"), bill.lines(turn, this.record?.held, this.#extract));
    by("bill-note").textContent = bill.note(turn, this.#extract);
    by("state").textContent = inWords(turn);
    document.body.dataset.state = turn.state;
  }

  get #extract() {
    return (this.record?.summarizer ?? this.summarizer) === "extractive";
  }

  /** Why there is thinking that is not to be seen, if there is. */
  #whyUnseen() {
    const { turn, record } = this;
    if (turn.onePlace && record?.style !== "off") return ONE_PLACE;
    if (!record?.characters) return "";
    return `The model thought ${countOf(record.characters, "character")}, and this server shows them to nobody.`;
  }

  #notes() {
    const shown = by("answer").querySelectorAll(".note").length;
    const notes = this.turn.notes.slice(shown).map((note) => make("p", { class: "note" }, note));
    by("answer").append(...notes);
  }

  #figures() {
    const { turn } = this;
    setText(by("thinking-figure"), turn.thinking ? countOf(turn.thinking.length, "character") : "");
    setText(by("summary-figure"), turn.parts.length ? countOf(turn.parts.length, "part") : "");
    setText(by("answer-figure"), turn.answer ? countOf(turn.answer.length, "character") : "");
    setText(by("bill-figure"), turn.usage === null ? "guesses" : "tokens");
  }

  #times() {
    const now = performance.now();
    if (!this.turn.over && now - this.#drawn < REDRAWN) return;
    this.#drawn = now;
    by("now").replaceChildren(timeline(times(this.turn, this.record), "This exchange", !this.turn.over));
  }
}

/** Whether it is known that the parts are a summary's, and no raw reasoning. @param {Turn} turn */
function isSummary(turn) {
  return !turn.onePlace || Boolean(turn.usage?.reasoning_summary);
}

/**
 * The times of an exchange as Abridge has them, and as they were seen from here until it does; parts
 * that upstream wrote itself are on no record.
 * @param {Turn} turn @param {any} record
 */
function times(turn, record) {
  if (record !== null) return record.parts.length > 0 ? record : { ...record, parts: turn.parts };
  return {
    seconds: turn.now(),
    thinking: turn.thought,
    answer: turn.answered,
    held: turn.held,
    parts: turn.parts,
    calls: [],
  };
}

/** @param {Turn} turn */
function inWords(turn) {
  const time = turn.over ? inSeconds(turn.now()) : `${turn.now().toFixed(1)} s`;
  switch (turn.state) {
    case "asking":
      return `Asked. Nothing has come yet, for ${time}.`;
    case "thinking":
      return `The model thinks, for ${time}.`;
    case "holding":
      return `The model has thought. Its answer is awaited, for ${(turn.held ?? 0).toFixed(1)} s.`;
    case "answering":
      return `The model answers, after ${inSeconds(turn.answered?.[0] ?? 0)}.`;
    case "done":
      return `Answered in ${time}.`;
    case "incomplete":
      return `Answered in part, in ${time}.`;
    case "stopped":
      return `Stopped after ${time}.`;
    case "failed":
      return `Failed after ${time}.`;
  }
}
