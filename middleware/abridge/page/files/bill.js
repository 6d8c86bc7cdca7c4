// @ts-check
/** What an exchange costs: a guess while it runs, and what the response says at its end. */
import { make } from "./dom.js";
import { countOf, inSeconds } from "./words.js";

/**
 * @typedef {import("./turn.js").Turn} Turn
 * @typedef {{name: string, words: string, value: string}} Line
 */

const TOKEN = 4; // characters, as a guess

const LINES = [
  { name: "input", words: "Asked" },
  { name: "output", words: "Thought and answered" },
  { name: "reasoning", words: "of it thinking" },
  { name: "model", words: "Model" },
  { name: "summary", words: "Summary" },
  { name: "share", words: "Summary’s share" },
  { name: "total", words: "Together" },
];

/** @param {number | null | undefined} count */
function number(count) {
  return count == null ? "not reported" : count.toLocaleString("en");
}

/** @param {number} characters */
function about(characters) {
  return `≈ ${Math.round(characters / TOKEN).toLocaleString("en")}`;
}

/** What one figure is without another that is in it; nothing is known without both. @param {number | null | undefined} all @param {number | null | undefined} part */
function less(all, part) {
  return all == null || part == null ? null : all - part;
}

/** The figures of either API, by the names of one. @param {Record<string, any>} usage */
function figures(usage) {
  const share = usage.reasoning_summary ?? null;
  const input = usage.input_tokens ?? usage.prompt_tokens;
  const output = usage.output_tokens ?? usage.completion_tokens;
  const details = usage.output_tokens_details ?? usage.completion_tokens_details;
  return {
    share,
    total: usage.total_tokens,
    input: share ? less(input, share.input_tokens) : input,
    output: share ? less(output, share.output_tokens) : output,
    model: share ? less(usage.total_tokens, share.total_tokens) : usage.total_tokens,
    reasoning: details?.reasoning_tokens,
  };
}

/**
 * @param {Turn} turn @param {number | null | undefined} held as Abridge measured it, null where
 *   nothing was to be waited for, undefined until it is known
 * @param {boolean} extract whether the summary costs nothing @returns {Line[]}
 */
export function lines(turn, held, extract) {
  const counted = turn.usage === null ? guessed(turn, extract) : reported(turn.usage);
  const guess = turn.over && !turn.answered ? null : turn.held;
  const waited = held === undefined ? guess : held;
  const about = held === undefined && waited !== null ? "≈ " : "";
  return [
    ...counted,
    { name: "parts", words: "Parts", value: String(turn.parts.length) },
    { name: "held", words: "Answer held", value: waited === null ? "–" : about + inSeconds(waited) },
  ];
}

/** @param {Turn} turn @param {boolean} extract @returns {Line[]} */
function guessed(turn, extract) {
  const written = turn.parts.reduce((sum, part) => sum + part.text.length, 0);
  const summary = extract ? 0 : written + (turn.parts.at(-1)?.of ?? 0); // it is read, too
  const said = turn.thinking.length + turn.answer.length;
  const model = turn.asked + said;
  const share = `≈ ${((100 * summary) / Math.max(model + summary, 1)).toFixed(1)} %`;
  const counts = [turn.asked, said, turn.thinking.length, model, summary].map(about);
  return named([...counts, share, about(model + summary)]);
}

/** @param {Record<string, any>} usage @returns {Line[]} */
function reported(usage) {
  const { share, total, input, output, model, reasoning } = figures(usage);
  const spent = share === null ? 0 : share.total_tokens;
  const part = spent == null || !total ? "not reported" : `${((100 * spent) / total).toFixed(1)} %`;
  const counts = [input, output, reasoning, model, spent].map(number);
  return named([...counts, part, number(total)]);
}

/** @param {string[]} values @returns {Line[]} */
function named(values) {
  return values.map((value, index) => ({ ...LINES[index], value }));
}

/** Who wrote the summary, and what its figures leave out. @param {Turn} turn @param {boolean} extracts */
export function note(turn, extracts) {
  if (turn.usage === null) {
    if (turn.over) return "No usage was reported: these are guesses, a token for four characters.";
    const extract = extracts ? " The summary is an extract: it costs no tokens." : "";
    return `≈ is a guess, a token for four characters; the response gives the count at its end.${extract}`;
  }
  const share = turn.usage.reasoning_summary;
  if (!share && turn.parts.length > 0) return "The model’s own server wrote the summary: what it took is among the model’s tokens.";
  if (!share) return "No summary is on this bill.";
  const extract = share.model === "extractive";
  const writer = extract ? " An extract: sentences of the reasoning itself, no model." : share.model === null ? "" : ` Written by ${share.model}.`;
  const missing = share.incomplete && !extract ? " Some of its calls did not report what they spent." : "";
  return `${countOf(share.parts, "call")} for the summary.${writer}${missing}`;
}

/** @param {HTMLElement} list @param {Line[]} lines */
export function show(list, lines) {
  for (const { name, words, value } of lines) {
    let figure = list.querySelector(`[data-figure="${name}"]`);
    if (figure === null) {
      figure = make("dd", { "data-figure": name });
      list.append(make("div", { class: name }, make("dt", {}, words), figure));
    }
    if (figure.textContent !== value) figure.textContent = value;
  }
}
