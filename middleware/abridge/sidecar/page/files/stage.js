// @ts-check
/** Shows one exchange while it goes on: its summary, its thinking, its answer, and what they take. */
import { Answer } from "./answer.js";
import * as bill from "./bill.js";
import { by, make, setText } from "./dom.js";
import { timesSeen } from "./figures.js";
import { Flow, Sight } from "./flow.js";
import { Summary, split } from "./summary.js";
import { Timeline, scaleOf } from "./timeline.js";
import { countOf, inSeconds } from "./words.js";

/** @typedef {import("./turn.js").Turn} Turn */

const REDRAWN = 250; // milliseconds, at least, between two pictures of the times

const CLEARED = ["thinking", "summary", "answer", "answer-notes", "now", "times", "counts", "thinking-figure", "summary-figure", "headline"];

const ONE_PLACE =
  "Chat Completions has one field for reasoning. The summary replaces the model’s thinking there, so this API does not show it. Ask over Responses to see both.";

export class Stage {
  /** @param {Turn} turn */
  constructor(turn) {
    this.turn = turn;
    this.clear();
    by("now").append(this.#timeline.element);
  }

  /** As if nothing had been asked, where nothing was answered. */
  clear() {
    for (const id of CLEARED) by(id).replaceChildren();
    fail("summary", "");
    fail("answer", "");
    delete document.body.dataset.state;
  }

  /** Abridge's own record of it, once it is made. @type {any} */
  record = null;
  summarizer = "";
  #thinking = new Flow(by("thinking"));
  #summary = new Summary();
  #answer = new Answer();
  #sight = new Sight(by("answer-box"));
  #timeline = new Timeline("This exchange");
  #drawn = -Infinity;

  show() {
    const { turn, record } = this;
    document.body.dataset.state = turn.state;
    const times = timesSeen(turn, record);
    this.#think();
    by("summary-name").textContent = isSummary(turn) ? "Summary" : "Reasoning, as clients see it";
    this.#summary.show(turn, times.wait);
    this.#answer.show(turn);
    this.#headline(times);
    this.#times();
    fail("summary", turn.failures.answer === "" ? turn.failures.summary : ""); // it breaks off with the answer
    fail("answer", turn.failures.answer);
    bill.show(by("times"), bill.times(turn, record));
    bill.show(by("counts"), bill.counts(turn, record, this.#extract));
    by("bill-note").textContent = bill.note(turn, this.#extract);
    this.#sight.follow(turn.answered !== null);
  }

  get #extract() {
    return (this.record?.summarizer ?? this.summarizer) === "extractive";
  }

  #think() {
    const { turn } = this;
    const unseen = turn.thinking === "" ? this.#whyUnseen() : "";
    this.#thinking.show(unseen || turn.thinking);
    by("thinking").classList.toggle("note", unseen !== "");
    setText(by("thinking-figure"), turn.thinking ? countOf(turn.thinking.length, "character") : "");
  }

  /** Why there is thinking that is not to be seen, if there is. */
  #whyUnseen() {
    const { turn, record } = this;
    if (turn.onePlace && record?.style !== "off") return ONE_PLACE;
    if (!record?.characters) return "";
    return `The model thought ${countOf(record.characters, "character")}, and this server shows them to nobody.`;
  }

  /** How much sooner there was something to read. @param {import("./figures.js").Times} times */
  #headline({ first, wait, seconds }) {
    const read = first !== null && isSummary(this.turn) ? first : null;
    const words = headline(read, wait, this.turn.over ? null : seconds);
    const box = by("headline");
    if (box.textContent !== words.join("")) box.replaceChildren(...words.map((word, index) => (index % 2 ? make("strong", {}, word) : word)));
    box.hidden = words.length === 0;
  }

  #times() {
    const now = performance.now();
    if (!this.turn.over && now - this.#drawn < REDRAWN) return;
    this.#drawn = now;
    const times = picture(this.turn, this.record);
    const titles = this.turn.parts.map((part) => split(part.text).title);
    this.#timeline.show(times, scaleOf([times], !this.turn.over), { labelled: true, titles });
  }
}

/** Words and, in turn with them, figures. @param {number | null} first @param {number | null} wait @param {number | null} now null once it is over @returns {string[]} */
function headline(first, wait, now) {
  if (first === null) return wait === null ? [] : ["The first readable text was the answer, after ", inSeconds(wait)];
  if (wait !== null && first < wait) return ["First readable text after ", inSeconds(first), " instead of ", inSeconds(wait), ", the wait for the answer"];
  if (wait !== null) return ["The summary came no sooner than the answer, after ", inSeconds(wait)];
  if (now === null) return ["First readable text after ", inSeconds(first), "; no answer came"];
  return ["First readable text after ", inSeconds(first), " instead of ", `${now.toFixed(1)} s`, " and counting"];
}

/** @param {"summary" | "answer"} name what failed @param {string} words */
function fail(name, words) {
  const box = by(`${name}-failed`);
  setText(box.firstElementChild, words);
  box.hidden = words === "";
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
function picture(turn, record) {
  if (record !== null) return record.parts.length > 0 ? record : { ...record, parts: turn.parts };
  return { seconds: turn.now(), thinking: turn.thought, answer: turn.answered, held: turn.held, parts: turn.parts, calls: [] };
}

/** How it went, for those who hear it. @param {Turn} turn */
export function inWords(turn) {
  const time = inSeconds(turn.now());
  const ends = { done: `Answered in ${time}.`, incomplete: `Answered in part, in ${time}.`, stopped: `Stopped after ${time}.`, failed: `Failed after ${time}.` };
  return /** @type {Record<string, string>} */ (ends)[turn.state] ?? "";
}
