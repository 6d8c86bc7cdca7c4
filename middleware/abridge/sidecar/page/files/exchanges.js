// @ts-check
/** The list of the last exchanges, which this server remembers. */
import { make, setText } from "./dom.js";
import { NAMES, figuresOf, timesOf } from "./figures.js";
import { Timeline, axis, isDrawn, scaleOf } from "./timeline.js";
import { inSeconds } from "./words.js";

const EVERY = 2000; // milliseconds
const APIS = { chat: "Chat Completions", responses: "Responses", messages: "Messages" };
const OUTCOMES = {
  ok: "answered",
  failed: "failed",
  left: "client left",
  passed: "passed unchanged",
  untouched: "passed untouched",
  error: "error",
  refused: "refused",
};

/** @param {string} [id] of the only one that is wanted @returns {Promise<{now: number, summarizer: string, exchanges: any[]}>} */
async function last(id) {
  const query = id === undefined ? "" : `?id=${id}`;
  const response = await fetch(new URL(`abridge/exchanges${query}`, document.baseURI));
  if (!response.ok) throw new Error(String(response.status));
  return response.json();
}

/** The record of one exchange, which is made at its end. @param {string} id @returns {Promise<any>} */
export async function recordOf(id) {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const reply = await last(id).catch(() => null);
    if (reply !== null && reply.exchanges.length > 0) return reply.exchanges[0];
    await new Promise((resolve) => setTimeout(resolve, 100 + 100 * attempt));
  }
  return null;
}

/** @typedef {{element: HTMLElement, ago: HTMLElement, timeline: Timeline | null, exchange: any}} Row */

export class Exchanges {
  /** @param {HTMLElement} list @param {HTMLElement} scale @param {HTMLElement} wrong @param {(reply: any) => void} news */
  constructor(list, scale, wrong, news) {
    this.#list = list;
    this.#scale = scale;
    this.#wrong = wrong;
    this.#news = news;
  }

  #list;
  #scale;
  #wrong;
  #news;
  /** @type {Map<string, Row>} */
  #rows = new Map();
  #timer = 0;

  /** Look now, and again while the page is in sight. */
  async watch() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    await this.refresh();
    clearTimeout(this.#timer); // of who looked meanwhile
    this.#timer = setTimeout(() => this.watch(), EVERY);
  }

  async refresh() {
    try {
      const reply = await last();
      this.#show(reply);
      this.#news(reply);
      setText(this.#wrong, "");
    } catch {
      setText(this.#wrong, "The list cannot be loaded: is Abridge still running? Trying again.");
    }
  }

  /** @param {{now: number, exchanges: any[]}} reply */
  #show({ now, exchanges }) {
    const rows = new Map();
    for (const one of exchanges) {
      const key = `${one.number} ${one.at}`; // the numbers begin anew with the server
      const shown = this.#rows.get(key) ?? row(one);
      shown.ago.textContent = ago(now - one.at - (one.seconds ?? 0));
      rows.set(key, shown);
    }
    const news = [...rows.keys()].join() !== [...this.#rows.keys()].join();
    this.#rows = rows;
    if (!news) return;
    this.#list.replaceChildren(...[...rows.values()].map(({ element }) => element));
    this.#draw();
  }

  /** All rows on one scale, so that what is longer took longer. */
  #draw() {
    const drawn = [...this.#rows.values()].filter(({ timeline }) => timeline !== null);
    const end = scaleOf(drawn.map(({ exchange }) => exchange));
    for (const { timeline, exchange } of drawn) timeline?.show(exchange, end);
    this.#scale.replaceChildren(...(drawn.length > 0 ? [make("div", { class: "scale" }, axis(end))] : []));
  }
}

/** @param {any} one @returns {Row} */
function row(one) {
  const model = one.model ?? "no model";
  const outcome = /** @type {Record<string, string>} */ (OUTCOMES)[one.outcome] ?? one.outcome;
  const label = one.cause ? `${outcome}: ${one.cause.replaceAll("_", " ")}` : outcome;
  const api = /** @type {Record<string, string>} */ (APIS)[one.api] ?? one.api;
  const timeline = isDrawn(one) ? new Timeline(`Timeline of ${model}`) : null;
  const ago = make("span", { class: "ago" });
  const figures = figuresOf(one).map(([name, value]) => make("div", {}, make("dt", {}, NAMES[name]), make("dd", { "data-figure": name }, value)));
  const element = make(
    "li",
    {},
    make("div", { class: "who" }, make("strong", { title: model }, model), ago),
    ...(timeline ? [timeline.element] : []),
    make(
      "details",
      { class: "came" },
      make("summary", {}, ...inShort(one, label)),
      make("p", {}, [api, ...asked(one)].join(" · ")),
      make("dl", {}, ...figures),
    ),
  );
  return { element, ago, timeline, exchange: one };
}

/** How much sooner there was something to read, or what became of it. @param {any} one @param {string} outcome */
function inShort(one, outcome) {
  const { first, wait } = timesOf(one);
  const kind = make("span", { class: `outcome ${one.outcome}` }, outcome);
  if (one.outcome !== "ok" || wait === null) return [kind];
  if (first === null || first >= wait) return [make("span", {}, "answer after ", make("b", {}, inSeconds(wait)))];
  return [make("span", {}, make("b", {}, inSeconds(first)), " instead of ", make("b", {}, inSeconds(wait)))];
}

/** @param {any} one @returns {string[]} */
function asked(one) {
  const way = [one.style === "off" ? "no summary" : one.style + writer(one)];
  if (!one.stream && one.outcome === "ok") way.push("not streamed");
  if (one.upstream && one.upstream !== "default") way.push(one.upstream);
  return way;
}

/** @param {any} one */
function writer(one) {
  if (one.summaries.native) return ", the model’s own";
  return one.summarizer === "extractive" && one.parts.length > 0 ? ", an extract" : "";
}

/** @param {number} seconds */
function ago(seconds) {
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return `${Math.floor(seconds / 3600)} h ago`;
}
