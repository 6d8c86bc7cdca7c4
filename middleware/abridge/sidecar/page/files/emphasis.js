// @ts-check
/** What Markdown marks within a line: emphasis, code, links. */
import { make } from "./dom.js";

const DEEPEST = 6;
const LONGEST = 20_000; // characters of a block that is searched for marks
const SCHEMES = ["http:", "https:", "mailto:"];
const NAMES = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };

const MARK = /\\[!-/:-@[-`{-~]|`+|!?\[|<?\b(?:https?:\/\/|mailto:)[^\s<>]{1,2000}>?|\*\*|__|~~|\*|_/g;
const LINK = /!?\[([^[\]]{0,1000})\]\((?:<([^<>\n]{0,2000})>|([^\s()<>]{0,2000}(?:\([^\s()]{0,200}\)[^\s()<>]{0,200}){0,20}))(?:[ \t]+"[^"\n]{0,500}")?\)/y;
const AFTER = /[.,;:!?'"*_~)\]]$/; // an address that stands in a sentence
const LETTER = /[\p{L}\p{N}]/u;

/** @param {string} text @param {boolean} [linked] whether it is a link's label @returns {(Node | string)[]} */
export function emphasized(text, depth = 0, linked = false) {
  if (depth > DEEPEST || text.length > LONGEST) return [text];
  const line = new Line(text, depth, linked);
  const marks = new RegExp(MARK);
  const nodes = [];
  let from = 0;
  for (let found = marks.exec(text); found !== null; found = marks.exec(text)) {
    const [end, node] = line.read(found[0], found.index) ?? [0, ""];
    if (end === 0) continue;
    nodes.push(text.slice(from, found.index), node);
    from = marks.lastIndex = end;
  }
  return [...nodes, text.slice(from)].filter((node) => node !== "");
}

class Line {
  /** @param {string} text @param {number} depth @param {boolean} linked */
  constructor(text, depth, linked) {
    this.#text = text;
    this.#depth = depth;
    this.#linked = linked;
  }

  #text;
  #depth;
  #linked;
  /** Marks that are not closed any more from here on, so that none is searched for twice. @type {Set<string>} */
  #open = new Set();

  /** Where what a mark begins ends, and what it becomes; null where it means nothing. @param {string} mark @param {number} at @returns {[number, Node | string] | null} */
  read(mark, at) {
    if (mark[0] === "\\") return [at + 2, mark[1]];
    if (mark[0] === "`") return this.#code(mark, at);
    if (mark.endsWith("[")) return this.#linked ? null : this.#link(at);
    if (mark.length > 2) return this.#linked ? null : this.#address(mark, at);
    return this.#emphasis(mark, at);
  }

  /** @param {string} mark @param {number} at @returns {[number, Node] | null} */
  #code(mark, at) {
    const end = this.#close(mark, at + mark.length, () => true);
    if (end === -1) return null;
    const code = this.#text.slice(at + mark.length, end);
    const bare = /^ .*[^ ].* $/s.test(code) ? code.slice(1, -1) : code;
    return [end + mark.length, make("code", {}, bare)];
  }

  /** @param {number} at @returns {[number, Node] | null} */
  #link(at) {
    LINK.lastIndex = at;
    const found = LINK.exec(this.#text);
    if (found === null) return null;
    const link = anchor(found[2] ?? found[3], (label) => emphasized(label, this.#depth + 1, true), found[1]);
    return link && [at + found[0].length, link];
  }

  /** @param {string} mark @param {number} at @returns {[number, Node] | null} */
  #address(mark, at) {
    const bracketed = mark.startsWith("<");
    if (bracketed !== mark.endsWith(">")) return null;
    let address = bracketed ? mark.slice(1, -1) : mark;
    while (!bracketed && AFTER.test(address) && !(address.endsWith(")") && address.includes("("))) address = address.slice(0, -1);
    const link = anchor(address, (label) => [label]);
    return link && [at + (bracketed ? mark.length : address.length), link];
  }

  /** @param {string} mark @param {number} at @returns {[number, Node] | null} */
  #emphasis(mark, at) {
    const text = this.#text;
    const inside = at + mark.length;
    const within = mark[0] === "_" && LETTER.test(text[at - 1] ?? "");
    if (within || /\s/.test(text[inside] ?? " ")) return null;
    const end = this.#close(mark, inside + 1, (place) => !/\s/.test(text[place - 1]) && !(mark[0] === "_" && LETTER.test(text[place + mark.length] ?? "")));
    if (end === -1) return null;
    const name = /** @type {Record<string, string>} */ (NAMES)[mark];
    return [end + mark.length, make(name, {}, ...emphasized(text.slice(inside, end), this.#depth + 1, this.#linked))];
  }

  /** Where a run of marks ends that closes this one. @param {string} mark @param {number} from @param {(place: number) => boolean} may @returns {number} */
  #close(mark, from, may) {
    if (this.#open.has(mark)) return -1;
    for (let at = this.#text.indexOf(mark, from); at !== -1; ) {
      let end = at;
      while (this.#text[end] === mark[0]) end += 1;
      const long = end - at;
      const fits = long === mark.length || (mark.length === 2 && long === 3);
      if (fits && may(at)) return end - mark.length;
      at = this.#text.indexOf(mark, end);
    }
    this.#open.add(mark);
    return -1;
  }
}

/** Null where the address is not one that may be followed. @param {string} address @param {(label: string) => (Node | string)[]} inside @param {string} [label] */
function anchor(address, inside, label) {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !SCHEMES.includes(url.protocol)) return null;
  return make("a", { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer" }, ...inside(label || address));
}
