// @ts-check
/** The answer: its Markdown, what else is to be said of it, and the page that follows it. */
import { by, make } from "./dom.js";
import { blocks } from "./markdown.js";

const REST = 9; // times as long as it took is waited before a long answer is read again

/** @typedef {import("./turn.js").Turn} Turn */

export class Answer {
  #box = by("answer");
  #notes = by("answer-notes");
  /** @type {{source: string, element: HTMLElement}[]} */
  #shown = [];
  #text = "";
  #next = 0;

  /** @param {Turn} turn */
  show(turn) {
    const now = performance.now();
    if (turn.answer !== this.#text && (turn.over || now >= this.#next)) {
      this.#render(turn.answer);
      this.#next = now + REST * (performance.now() - now);
    }
    const notes = turn.notes.slice(this.#notes.childElementCount);
    this.#notes.append(...notes.map((note) => make("p", { class: "note" }, note)));
  }

  /** Blocks that are as they were stay, so that what is selected in them does. @param {string} text */
  #render(text) {
    this.#text = text;
    const found = blocks(text);
    const same = found.findIndex(({ source }, index) => source !== this.#shown[index]?.source);
    const kept = same === -1 ? found.length : same;
    for (const { element } of this.#shown.splice(kept)) element.remove();
    for (const { source, build } of found.slice(kept)) {
      const element = build();
      this.#shown.push({ source, element });
      this.#box.append(element);
    }
  }
}
