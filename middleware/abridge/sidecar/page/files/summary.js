// @ts-check
/** The summary: a line that says what the model is at, and its parts, each with its title. */
import { by, make, setText } from "./dom.js";
import { following, rewind } from "./flow.js";
import { countOf, inSeconds } from "./words.js";

/**
 * @typedef {import("./turn.js").Turn} Turn
 * @typedef {import("./turn.js").Part} Part
 */

const TITLE = /^\*\*((?:(?!\*\*)[^\n])+?)(?:\*\*[ \t]*(?:\n\s*|$)|\*?$)/;

/** A part's title, which may still grow, and what follows it. @param {string} text */
export function split(text) {
  const found = TITLE.exec(text);
  if (found === null) return { title: "", body: text.startsWith("*") && text.length < 3 ? "" : text };
  return { title: found[1], body: text.slice(found[0].length) };
}

/** The title that was the last to be complete. @param {Part[]} parts */
export function currentTitle(parts) {
  const titles = parts.filter((part) => part.ended !== null || part.text.includes("\n")).map((part) => split(part.text).title);
  return titles.findLast((title) => title !== "") ?? "";
}

/** @param {Turn} turn @param {number | null} wait for the answer */
export function livingLine(turn, wait) {
  const reasoned = turn.parts.length > 0 || turn.thinking !== "";
  if (turn.state === "asking") return "Waiting for the model";
  if (!turn.over && turn.answered === null) return currentTitle(turn.parts) || "Thinking";
  if (wait !== null) return `${reasoned ? "Thought for" : "Answered after"} ${inSeconds(wait)}`;
  const ends = { stopped: "Stopped", failed: "Failed" };
  return `${/** @type {Record<string, string>} */ (ends)[turn.state] ?? "Over"} after ${inSeconds(turn.now())}`;
}

/** Show or hide the parts. @param {boolean} open */
export function open(open) {
  by("open").setAttribute("aria-expanded", String(open));
  by("summary-box").classList.toggle("open", open);
  by("summary").scrollTop = by("summary").scrollHeight;
  following(by("summary"), () => {});
}

export class Summary {
  #box = by("summary");
  /** @type {{element: HTMLElement, title: HTMLElement, body: HTMLElement, text: string, ended: boolean}[]} */
  #shown = [];
  #over = false;

  /** @param {Turn} turn @param {number | null} wait for the answer */
  show(turn, wait) {
    const { parts } = turn;
    setText(by("living"), livingLine(turn, wait));
    setText(by("time"), turn.over ? "" : `${turn.now().toFixed(1)} s`);
    setText(by("summary-figure"), parts.length ? countOf(parts.length, "part") : "");
    by("open").hidden = parts.length + turn.summaryNotes.length === 0;
    following(this.#box, () => {
      if (parts.length < this.#shown.length) this.#clear();
      parts.forEach((part, index) => this.#part(part, index));
      const shown = this.#box.querySelectorAll(".note").length;
      this.#box.append(...turn.summaryNotes.slice(shown).map((note) => make("p", { class: "note" }, note)));
    });
    if (turn.over && !this.#over) rewind(this.#box);
    this.#over = turn.over;
  }

  #clear() {
    this.#box.replaceChildren();
    this.#shown = [];
  }

  /** @param {Part} part @param {number} index */
  #part(part, index) {
    const shown = (this.#shown[index] ??= this.#add(part, index));
    if (shown.text !== part.text) {
      const { title, body } = split(part.text);
      setText(shown.title, title);
      shown.body.textContent = body;
      shown.text = part.text;
    }
    if (part.ended !== null && !shown.ended) {
      shown.ended = true;
      shown.element.classList.remove("growing");
    }
  }

  /** @param {Part} part @param {number} index */
  #add(part, index) {
    const title = make("h3", {});
    const body = make("p", {});
    const at = make("span", { class: "at", title: "since the question" }, inSeconds(part.began));
    const element = make("article", { class: "part growing", "data-part": String(index) }, at, title, body);
    this.#box.append(element);
    return { element, title, body, text: "", ended: false };
  }
}
