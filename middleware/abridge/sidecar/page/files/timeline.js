// @ts-check
/**
 * The picture of an exchange: thinking, what the answer waited, and the answer on one line; beneath
 * it the parts of the summary over the calls that wrote them. Places are percents, so it takes any
 * width. Each bar tells its times where it is pointed at, or reached by Tab and the arrow keys.
 */
import { make } from "./dom.js";
import { countOf, inSeconds } from "./words.js";

/**
 * @typedef {{began: number, ended: number | null}} Mark
 * @typedef {{seconds: number | null, thinking: [number, number] | null, answer: [number, number] | null,
 *   held: number | null, parts: Mark[], calls: Mark[]}} Times
 * @typedef {{kind: string, from: number, to: number, words: string}} Bar
 */

const KINDS = {
  thinking: "thinking",
  held: "answer held for its summary",
  answer: "answer",
  call: "part being written",
  part: "part of the summary",
};
const MANY = 6; // parts, whose times are no longer told one by one
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600];
const TICKS = 6;
const ROOMS = [10, 20, 40, 60, 120, 300, 600, 1800, 3600]; // in which bars grow, before all is rescaled

/** Whether there is anything to draw. @param {Times} times */
export function isDrawn({ thinking, answer, parts, calls }) {
  return thinking !== null || answer !== null || parts.length + calls.length > 0;
}

/** What the colours mean. */
export function legend() {
  const items = Object.entries(KINDS).map(([kind, words]) => make("li", {}, make("i", { class: `bar ${kind}` }), words));
  return make("ul", { class: "legend", "aria-label": "Colours of the timelines" }, ...items);
}

/** Where the scale ends on which all of these fit. @param {Times[]} all @param {boolean} [runs] whether they still grow */
export function scaleOf(all, runs = false) {
  const longest = Math.max(0.01, ...all.map(extent));
  if (runs) return ROOMS.find((room) => room > longest) ?? longest;
  const step = stepOf(longest);
  return Math.ceil(longest / step - 1e-9) * step;
}

/** @param {number} end */
function stepOf(end) {
  return STEPS.find((one) => end / one <= TICKS) ?? end / TICKS;
}

/** @param {Times} times */
function extent(times) {
  const marks = [...times.parts, ...times.calls].map((mark) => mark.ended);
  const ends = [times.seconds, times.thinking?.[1], times.answer?.[1], ...marks];
  return Math.max(...ends.map((time) => time ?? 0));
}

/** The scale's seconds. @param {number} end @param {boolean} [labelled] */
export function axis(end, labelled = true) {
  const step = stepOf(end);
  const ticks = [];
  for (let index = 0; index * step <= end + step / 1e6; index += 1) {
    const tick = make("span", {}, labelled ? label(index * step, step) : "");
    placed(tick, (100 * index * step) / end);
    ticks.push(tick);
  }
  return make("div", { class: "axis", "aria-hidden": "true" }, ...ticks);
}

/** Near the right end, more of an element is left of its place. @param {HTMLElement} element @param {number} percent */
function placed(element, percent) {
  element.style.left = `${percent.toFixed(2)}%`;
  element.style.translate = `${-percent.toFixed(2)}% 0`;
}

/** @param {number} time @param {number} step */
function label(time, step) {
  return time === 0 ? "0" : `${time.toFixed(step < 0.1 ? 2 : step < 1 ? 1 : 0)} s`;
}

export class Timeline {
  element;
  #title;
  #bars = make("div", { class: "bars" });
  #axis = axis(1, false);
  #tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });
  #end = 0;

  /** @param {string} title */
  constructor(title) {
    this.#title = title;
    this.element = make("div", { class: "timeline", role: "group", tabindex: "0" }, this.#axis, this.#bars, this.#tip);
    for (const event of ["pointerover", "focusin"]) this.element.addEventListener(event, (happened) => this.#tell(happened.target));
    for (const event of ["pointerleave", "focusout"]) this.element.addEventListener(event, () => (this.#tip.hidden = true));
    this.element.addEventListener("keydown", (event) => this.#move(event));
  }

  /** @param {Times} times @param {number} end of the scale @param {{labelled?: boolean, titles?: string[]}} [more] */
  show(times, end, { labelled = false, titles = [] } = {}) {
    this.element.setAttribute("aria-label", `${this.#title}: ${described(times)}`);
    if (end !== this.#end) {
      const scale = axis(end, labelled);
      this.#axis.replaceWith(scale);
      this.#axis = scale;
      this.#end = end;
    }
    const bars = barsOf(times, times.seconds ?? end, titles);
    while (this.#bars.childElementCount > bars.length) this.#bars.lastElementChild?.remove();
    bars.forEach((bar, index) => this.#draw(bar, index));
  }

  /** @param {Bar} bar @param {number} index */
  #draw({ kind, from, to, words }, index) {
    const known = this.#bars.children[index];
    const element = /** @type {HTMLElement} */ (known ?? make("div", { role: "img", tabindex: "-1" }));
    element.className = `bar ${kind}`;
    element.setAttribute("aria-label", words);
    element.style.left = `${Math.min(100, (100 * from) / this.#end).toFixed(2)}%`;
    element.style.width = `${Math.max(0, Math.min(100, (100 * (to - from)) / this.#end)).toFixed(2)}%`;
    if (known === undefined) this.#bars.append(element);
  }

  /** @param {EventTarget | null} target */
  #tell(target) {
    const bar = target instanceof HTMLElement && target.parentElement === this.#bars ? target : null;
    this.#tip.hidden = bar === null;
    if (bar === null) return;
    this.#tip.textContent = bar.getAttribute("aria-label");
    placed(this.#tip, parseFloat(bar.style.left) + parseFloat(bar.style.width) / 2);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const bars = /** @type {HTMLElement[]} */ ([...this.#bars.children]);
    if (step === undefined || bars.length === 0) return;
    event.preventDefault();
    const at = bars.findIndex((bar) => bar === document.activeElement);
    bars[at === -1 ? (step > 0 ? 0 : bars.length - 1) : Math.max(0, Math.min(bars.length - 1, at + step))].focus();
  }
}

/** Where it was thought and answered by turns, neither is to hide the other. @param {Times} times @param {number} now @param {string[]} titles @returns {Bar[]} */
function barsOf({ thinking, answer, held, parts, calls }, now, titles) {
  const turns = thinking !== null && answer !== null && answer[0] < thinking[1] ? " by-turns" : "";
  /** @type {Bar[]} */
  const bars = [];
  const add = (/** @type {keyof typeof KINDS} */ kind, /** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ name, more = "") =>
    bars.push({ kind: kind + more, from, to, words: `${name}, ${span(from, to)}` });
  if (thinking) add("thinking", ...thinking, "Thinking", turns);
  if (thinking && held) add("held", thinking[1], thinking[1] + held, "Answer held for its summary", turns);
  if (answer) add("answer", ...answer, "Answer", turns);
  calls.forEach((call, index) => add("call", call.began, call.ended ?? now, `Call ${index + 1} to the summarizer`));
  parts.forEach((part, index) => add("part", part.began, part.ended ?? now, [`Part ${index + 1}`, titles[index]].filter(Boolean).join(": ")));
  return bars;
}

/** @param {number} from @param {number} to */
function span(from, to) {
  const [began, ended] = [from, to].map(inSeconds);
  return began === ended ? `at ${began}` : `${began} to ${ended}`;
}

/** @param {Mark[]} parts */
function begins(parts) {
  const times = parts.map((part) => inSeconds(part.began));
  return times.length > MANY ? `from ${times[0]} to ${times.at(-1)}` : `at ${times.join(", ")}`;
}

/** The picture, for those who do not see it. @param {Times} times */
export function described({ seconds, thinking, answer, held, parts }) {
  const said = [];
  if (thinking) said.push(`thought from ${inSeconds(thinking[0])} to ${inSeconds(thinking[1])}`);
  if (parts.length > 0) said.push(`${countOf(parts.length, "part")} of the summary, ${begins(parts)}`);
  if (held != null) said.push(`answer held for ${inSeconds(held)}`);
  if (answer) said.push(`answered from ${inSeconds(answer[0])} to ${inSeconds(answer[1])}`);
  if (seconds != null) said.push(`${inSeconds(seconds)} in all`);
  return said.join("; ") || "nothing was recorded";
}
