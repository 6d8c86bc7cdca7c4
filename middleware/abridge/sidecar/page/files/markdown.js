// @ts-check
/**
 * Markdown, as models write it, as elements. What a model says only ever becomes text nodes: HTML
 * stays text, images become links, and links lead to http, https and mailto alone. Line breaks are
 * kept. The time it takes grows with the text, not with how its marks are placed.
 */
import { make } from "./dom.js";
import { emphasized } from "./emphasis.js";

const DEEPEST = 6; // lists and quotes in one another
const WIDEST = 50; // columns of a table

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const DIVIDER = /^:?-+:?$/;

/** @typedef {{source: string, build: () => HTMLElement}} Block its text, by which it is known again */

/** The blocks of a text, in their order. @param {string} text @returns {Block[]} */
export function blocks(text, depth = 0) {
  const lines = text.split(/\r\n|\n|\r/).map((line) => line.replace(/^[ ]*\t[ \t]*/, (tabs) => tabs.replaceAll("\t", "    ")));
  const found = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const [next, build] = block(lines, at, depth);
    found.push({ source: lines.slice(at, next).join("\n"), build });
    at = next;
  }
  return found;
}

/** The block that begins at a line: where it ends, and how it is built. @param {string[]} lines @param {number} at @param {number} depth @returns {[number, () => HTMLElement]} */
function block(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence !== null) return code(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading !== null) return [at + 1, () => title(heading)];
  if (RULE.test(line)) return [at + 1, () => make("hr")];
  if (isTable(lines, at)) return table(lines, at);
  if (depth < DEEPEST && QUOTE.test(line)) return quote(lines, at, depth);
  const item = ITEM.exec(line);
  if (depth < DEEPEST && item !== null) return list(lines, at, item, depth);
  return paragraph(lines, at);
}

/** @param {string[]} lines @param {number} at @param {RegExpExecArray} fence @returns {[number, () => HTMLElement]} */
function code(lines, at, [opening, mark, info]) {
  const closes = (/** @type {string} */ line) => line.trim().startsWith(mark) && line.trim().replaceAll(mark[0], "") === "";
  let last = at + 1;
  while (last < lines.length && !closes(lines[last])) last += 1;
  const indent = new RegExp(`^ {0,${opening.indexOf(mark)}}`);
  const text = lines.slice(at + 1, last).map((line) => line.replace(indent, "")).join("\n");
  const language = info.trim().split(/\s/)[0].slice(0, 40);
  return [Math.min(last + 1, lines.length), () => make("pre", { tabindex: "0", "data-language": language }, make("code", {}, text))];
}

/** The page has the first two levels. @param {RegExpExecArray} heading */
function title([, marks, text]) {
  return make(`h${Math.min(6, marks.length + 2)}`, {}, ...emphasized(text.trimEnd().replace(/ #{1,6}$/, "")));
}

/** @param {string} line */
function cells(line) {
  const bare = line.trim().replace(/^\|/, "");
  return (bare.endsWith("|") && !bare.endsWith("\\|") ? bare.slice(0, -1) : bare).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** @param {string[]} lines @param {number} at */
function isTable(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("-")) return false;
  const dividers = cells(lines[at + 1]);
  return dividers.every((cell) => DIVIDER.test(cell)) && dividers.length <= WIDEST && dividers.length === cells(lines[at]).length;
}

/** @param {string[]} lines @param {number} at @returns {[number, () => HTMLElement]} */
function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const sides = cells(lines[at + 1]).map((cell) => (!cell.endsWith(":") ? "" : cell.startsWith(":") ? "center" : "right"));
  const row = (/** @type {string} */ line, /** @type {string} */ name) =>
    make("tr", {}, ...cells(line).slice(0, sides.length).map((cell, index) => make(name, { class: sides[index] }, ...emphasized(cell))));
  const build = () =>
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" },
      make("table", {}, make("thead", {}, row(lines[at], "th")), make("tbody", {}, ...lines.slice(at + 2, end).map((line) => row(line, "td")))));
  return [end, build];
}

/** @param {string[]} lines @param {number} at @param {number} depth @returns {[number, () => HTMLElement]} */
function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const text = lines.slice(at, end).map((line) => line.replace(QUOTE, "$1")).join("\n");
  return [end, () => make("blockquote", {}, ...built(text, depth + 1))];
}

/** Its items are what begins with a mark of its kind; what is indented, or goes on without a blank line, is an item's. @param {string[]} lines @param {number} at @param {RegExpExecArray} first @param {number} depth @returns {[number, () => HTMLElement]} */
function list(lines, at, first, depth) {
  const isNumbered = (/** @type {string} */ mark) => mark.length > 1;
  const numbered = isNumbered(first[2]);
  const inside = first[1].length + 2;
  /** @type {string[][]} */
  const items = [];
  let width = 0; // of the mark and what stands before it
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    const indent = line.length - line.trimStart().length;
    const item = ITEM.exec(line);
    if (line.trim() === "") items.at(-1)?.push("");
    else if (items.length > 0 && indent >= inside) items.at(-1)?.push(line.slice(Math.min(indent, width)));
    else if (item !== null && isNumbered(item[2]) === numbered && !RULE.test(line)) {
      width = item[0].length - item[4].length;
      items.push([item[4]]);
    } else if (lines[end - 1].trim() === "" || begins(line)) break;
    else items.at(-1)?.push(line.trimStart());
  }
  const start = numbered ? { start: String(parseInt(first[2], 10)) } : undefined;
  return [end, () => make(numbered ? "ol" : "ul", start, ...items.map((item) => make("li", {}, ...built(checked(item.join("\n")), depth + 1))))];
}

/** A task's box. @param {string} text */
function checked(text) {
  return text.replace(/^\[([ xX])\] /, (_, mark) => (mark === " " ? "☐ " : "☑ "));
}

/** Whether a line begins a block without a blank line before it. @param {string} line */
function begins(line) {
  const item = ITEM.exec(line);
  const breaks = item !== null && item[4] !== "" && (item[2].length === 1 || parseInt(item[2], 10) === 1);
  return breaks || [FENCE, HEADING, RULE, QUOTE].some((form) => form.test(line));
}

/** @param {string[]} lines @param {number} at @returns {[number, () => HTMLElement]} */
function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !begins(lines[end]) && !isTable(lines, end)) end += 1;
  return [end, () => make("p", {}, ...emphasized(lines.slice(at, end).join("\n")))];
}

/** @param {string} text @param {number} depth */
function built(text, depth) {
  return blocks(text, depth).map(({ build }) => build());
}
