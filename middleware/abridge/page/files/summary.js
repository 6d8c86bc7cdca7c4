// @ts-check
/** The parts of a summary, each with its title, as they grow. */
import { make } from "./dom.js";
import { following } from "./flow.js";
import { inSeconds } from "./words.js";

/** @typedef {import("./turn.js").Part} Part */

const TITLE = /^\*\*((?:(?!\*\*)[^\n])+?)(?:\*\*[ \t]*(?:\n\s*|$)|\*?$)/;

/** A part's title, which may still grow, and what follows it. @param {string} text */
export function split(text) {
  const found = TITLE.exec(text);
  if (found === null) return { title: "", body: text.startsWith("*") && text.length < 3 ? "" : text };
  return { title: found[1], body: text.slice(found[0].length) };
}

export class Summary {
  /** @param {HTMLElement} box @param {(words: string) => void} say to those who do not see it */
  constructor(box, say) {
    this.#box = box;
    this.#say = say;
  }

  #box;
  #say;
  /** @type {{element: HTMLElement, title: HTMLElement, body: HTMLElement, text: string, ended: boolean}[]} */
  #shown = [];

  /** @param {Part[]} parts @param {string[]} notes */
  show(parts, notes) {
    following(this.#box, () => {
      if (parts.length < this.#shown.length) this.#clear();
      parts.forEach((part, index) => this.#part(part, index));
      const shown = this.#box.querySelectorAll(".note").length;
      this.#box.append(...notes.slice(shown).map((note) => make("p", { class: "note" }, note)));
    });
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
      shown.title.textContent = title;
      shown.title.hidden = title === "";
      shown.body.textContent = body;
      shown.text = part.text;
    }
    if (part.ended !== null && !shown.ended) {
      shown.ended = true;
      shown.element.classList.remove("open");
      this.#say(`Part ${index + 1}: ${shown.title.textContent || shown.body.textContent}`);
    }
  }

  /** @param {Part} part @param {number} index */
  #add(part, index) {
    const title = make("h3", {});
    const body = make("p", {});
    const at = make("span", { class: "at", title: "since the question" }, inSeconds(part.began));
    const element = make("article", { class: "part open", "data-part": String(index) }, at, title, body);
    this.#box.append(element);
    return { element, title, body, text: "", ended: false };
  }
}
