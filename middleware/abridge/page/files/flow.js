// @ts-check
/** A text that grows, in a box that follows its end until its reader scrolls back. */
export class Flow {
  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
    this.#text = document.createTextNode("");
  }

  #box;
  #text;

  /** @param {string} text */
  show(text) {
    const before = this.#text.data;
    if (text === before) return;
    following(this.#box, () => {
      if (text.startsWith(before)) this.#text.appendData(text.slice(before.length));
      else this.#text.data = text;
      if (!this.#text.isConnected) this.#box.append(this.#text);
      if (text === "") this.#text.remove();
    });
  }
}

/** Change what is in a box, and keep its end in sight if it was. @param {HTMLElement} box @param {() => void} change */
export function following(box, change) {
  const follows = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  change();
  if (follows) box.scrollTop = box.scrollHeight;
}
