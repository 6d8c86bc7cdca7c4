// @ts-check
/**
 * What has been seen of one streamed answer, whatever API it came in. Times are in seconds since
 * it was asked for; null is not yet.
 *
 * `of` is how many characters had been thought when the part began.
 *
 * @typedef {{key: string, text: string, of: number, began: number, ended: number | null}} Part
 * @typedef {"asking" | "thinking" | "holding" | "answering" | "done" | "incomplete" | "failed" | "stopped"} State
 */
export class Turn {
  /** @param {number} asked characters of the question @param {() => number} clock in seconds */
  constructor(asked, clock) {
    this.asked = asked;
    this.#clock = clock;
    this.#began = clock();
  }

  #clock;
  #began;
  /** Which item was the last to have text. @type {Record<"thought" | "said", unknown>} */
  #items = { thought: undefined, said: undefined };
  thinking = "";
  /** Whether the API has no room for raw reasoning beside its summary. */
  onePlace = false;
  /** @type {Part[]} */
  parts = [];
  answer = "";
  /** Words about the summary, and about the answer, that are neither. @type {string[]} */
  summaryNotes = [];
  /** @type {string[]} */
  notes = [];
  /** Why there is no summary, or not all of the answer. */
  failures = { summary: "", answer: "" };
  /** As the response has it. @type {Record<string, any> | null} */
  usage = null;
  /** @type {State} */
  state = "asking";
  /** @type {[number, number] | null} */
  thought = null;
  /** Whether the thinking is known to be over. */
  thoughtOut = false;
  /** When the first text of the summary came. @type {number | null} */
  readable = null;
  /** @type {[number, number] | null} */
  answered = null;
  /** @type {number | null} */
  ended = null;

  now() {
    return this.ended ?? this.#clock() - this.#began;
  }

  get over() {
    return this.ended !== null;
  }

  /** How long the answer has waited so far, or null while it is unknown. */
  get held() {
    if (this.thought === null || !this.thoughtOut) return null;
    return (this.answered?.[0] ?? this.now()) - this.thought[1];
  }

  /** @param {string} text @param {unknown} [item] of the output */
  think(text, item) {
    this.thinking += this.#apart("thought", this.thinking, item) + text;
    this.thought = [this.thought?.[0] ?? this.now(), this.now()];
    if (this.state === "asking" || this.state === "holding") this.state = "thinking";
    this.thoughtOut = false;
  }

  endThinking() {
    this.thoughtOut = this.thought !== null;
    if (this.state === "thinking") this.state = "holding";
  }

  /** The part of that key, a new one where there is none. @param {string} key */
  part(key) {
    const known = this.parts.find((part) => part.key === key);
    if (known !== undefined) return known;
    const part = { key, text: "", of: this.thinking.length, began: this.now(), ended: null };
    this.parts.push(part);
    if (this.state === "asking") this.state = "thinking";
    return part;
  }

  /** More of a part's text. @param {string} key @param {string} text */
  write(key, text) {
    this.part(key).text += text;
    this.readable ??= this.now();
  }

  /** @param {string} text @param {unknown} [item] of the output */
  say(text, item) {
    if (text === "") return;
    this.answer += this.#apart("said", this.answer, item) + text;
    this.answered = [this.answered?.[0] ?? this.now(), this.now()];
    this.state = "answering";
  }

  /** What sets a text apart from that of another item. @param {"thought" | "said"} way @param {string} before @param {unknown} item */
  #apart(way, before, item) {
    const same = this.#items[way] === item;
    this.#items[way] = item;
    return same || before === "" || before.endsWith("\n\n") ? "" : "\n\n";
  }

  /** @param {"done" | "incomplete" | "failed" | "stopped"} state @param {string} [words] */
  end(state, words) {
    if (this.over) return;
    for (const part of this.parts) part.ended ??= this.now();
    this.ended = this.now();
    this.state = state;
    if (state === "failed") this.failures.answer = words ?? "";
    else if (words) this.notes.push(words);
  }

  /** What was taken for a summary was the model's own reasoning. @param {string} reasoning */
  unsummarize(reasoning) {
    this.thinking = reasoning;
    if (this.parts.length > 0) this.thought = [this.parts[0].began, this.now()];
    this.parts = [];
    this.readable = null;
    this.onePlace = false;
  }
}
