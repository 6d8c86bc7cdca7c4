// @ts-check
/** Texts that grow: in a box that follows its end, and on a page that follows the answer. */

const NEAR = 24; // pixels from the end of a box, whose reader then still reads along
const MARGIN = 24; // pixels above and below what is kept in sight

/** A text in a box. */
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
  const follows = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
  change();
  if (follows) box.scrollTop = box.scrollHeight;
  fade(box);
}

/** Show the beginning of what is in a box, unless its reader has left the end. @param {HTMLElement} box */
export function rewind(box) {
  if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR) box.scrollTop = 0;
  fade(box);
}

/** Mark the edges at which a box clips its text. @param {HTMLElement} box */
export function fade(box) {
  const below = box.scrollHeight - box.scrollTop - box.clientHeight;
  box.classList.toggle("clipped-above", box.scrollTop > 1);
  box.classList.toggle("clipped-below", below > 1);
}

/** Have the edges of a box fade as it is scrolled or gets another size. @param {HTMLElement} box */
export function fading(box) {
  box.addEventListener("scroll", () => fade(box), { passive: true });
  new ResizeObserver(() => fade(box)).observe(box);
}

/** Keeps an element's end in sight, as long as its beginning is, until the reader scrolls. */
export class Sight {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.#element = element;
  }

  #element;
  #at = NaN; // where the page was scrolled to, as far as it was left alone
  #left = false;

  /** @param {boolean} shown whether there is anything to follow */
  follow(shown) {
    this.#left ||= Math.abs(scrollY - this.#at) > 2;
    if (this.#left) return;
    const { top, bottom } = this.#element.getBoundingClientRect();
    const more = Math.min(top - MARGIN, bottom + MARGIN - innerHeight);
    if (shown && more > 0) scrollBy({ top: more, behavior: "instant" });
    this.#at = scrollY;
  }
}
