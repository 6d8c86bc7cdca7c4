// @ts-check
/** The list of the last exchanges, which this server remembers. */
import { make, setText } from "./dom.js";
import { isDrawn, timeline } from "./timeline.js";
import { countOf, inSeconds } from "./words.js";

const EVERY = 2000; // milliseconds
const APIS = { responses: "Responses", chat: "Chat Completions" };
const OUTCOMES = {
  ok: "answered",
  failed: "failed",
  left: "client left",
  passed: "passed as it was",
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

export class Exchanges {
  /** @param {HTMLElement} list @param {HTMLElement} wrong @param {(reply: any) => void} news */
  constructor(list, wrong, news) {
    this.#list = list;
    this.#wrong = wrong;
    this.#news = news;
  }

  #list;
  #wrong;
  #news;
  /** @type {Map<string, HTMLElement>} */
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
      setText(this.#wrong, "The list cannot be had: does Abridge still run? Trying again.");
    }
  }

  /** @param {{now: number, exchanges: any[]}} reply */
  #show({ now, exchanges }) {
    const rows = new Map();
    for (const one of exchanges) {
      const key = `${one.number} ${one.at}`; // the numbers begin anew with the server
      const shown = this.#rows.get(key) ?? row(one);
      /** @type {any} */ (shown.querySelector(".ago")).textContent = ago(now - one.at - (one.seconds ?? 0));
      rows.set(key, shown);
    }
    const news = [...rows.keys()].join() !== [...this.#rows.keys()].join();
    this.#rows = rows;
    if (news) this.#list.replaceChildren(...rows.values());
  }
}

/** @param {any} one @returns {HTMLElement} */
function row(one) {
  const model = one.model ?? "no model";
  const outcome = /** @type {Record<string, string>} */ (OUTCOMES)[one.outcome] ?? one.outcome;
  const label = one.cause ? `${outcome}: ${one.cause.replaceAll("_", " ")}` : outcome;
  const way = [/** @type {Record<string, string>} */ (APIS)[one.api] ?? one.api, ...asked(one)];
  return make(
    "li",
    {},
    make("div", { class: "who" }, make("strong", {}, model), make("span", {}, way.join(" · ")), make("span", { class: "ago" })),
    ...(isDrawn(one) ? [timeline(one, `Timeline of ${model}`)] : []),
    make("p", { class: "came" }, make("span", { class: `outcome ${one.outcome}` }, label), ...figures(one).map((figure) => make("span", {}, figure))),
  );
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

/** @param {any} one @returns {string[]} */
function figures(one) {
  const texts = [];
  if (one.seconds != null) texts.push(inSeconds(one.seconds));
  if (one.held != null) texts.push(`held ${inSeconds(one.held)}`);
  const model = total(one.used);
  if (model !== null) texts.push(`model ${countOf(model, "token")}`);
  const summary = total(one.spent);
  if (summary !== null) texts.push(`summary ${countOf(summary, "token")}`);
  return texts;
}

/** @param {{input: number | null, output: number | null, total: number | null}} tokens */
function total(tokens) {
  return tokens.total ?? (tokens.input === null || tokens.output === null ? null : tokens.input + tokens.output);
}

/** @param {number} seconds */
function ago(seconds) {
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return `${Math.floor(seconds / 3600)} h ago`;
}
