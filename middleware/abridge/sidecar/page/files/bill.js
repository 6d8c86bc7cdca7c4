// @ts-check
/** What an exchange takes: a guess while it runs, and what the response says at its end. */
import { make } from "./dom.js";
import { NAMES, timesSeen, tokens, total } from "./figures.js";
import { countOf, inSeconds } from "./words.js";

/**
 * @typedef {import("./turn.js").Turn} Turn
 * @typedef {{name: string, words: string, value: string}} Line
 */

const TOKEN = 4; // characters, as a guess

const COUNTS = {
  input: "Question",
  output: "Thinking and answer",
  reasoning: "of which thinking",
  model: NAMES.model,
  summary: NAMES.summary,
  share: "Summary’s share",
  total: "Together",
};

/** @param {number} characters */
function about(characters) {
  return `≈ ${tokens(Math.round(characters / TOKEN))}`;
}

/** What one figure is without another that is in it; nothing is known without both. @param {number | null | undefined} all @param {number | null | undefined} part */
function less(all, part) {
  return all == null || part == null ? null : all - part;
}

/** The times, and in how many parts the summary came. @param {Turn} turn @param {any} record null until Abridge has made it @returns {Line[]} */
export function times(turn, record) {
  const guess = record === null && !turn.over ? "≈ " : "";
  const lines = Object.entries(timesSeen(turn, record)).map(([name, time]) => ({
    name,
    words: NAMES[/** @type {keyof typeof NAMES} */ (name)],
    value: time === null ? "–" : guess + inSeconds(time),
  }));
  return [...lines, { name: "parts", words: "Summary arrived in", value: countOf(turn.parts.length, "part") }];
}

/** The tokens. @param {Turn} turn @param {any} record null until Abridge has made it @param {boolean} extract whether the summary costs nothing @returns {Line[]} */
export function counts(turn, record, extract) {
  const counted = turn.usage === null ? guessed(turn, extract) : reported(turn.usage, record?.used);
  return Object.entries(COUNTS).map(([name, words], index) => ({ name, words, value: counted[index] }));
}

/** @param {Turn} turn @param {boolean} extract @returns {string[]} */
function guessed(turn, extract) {
  const written = turn.parts.reduce((sum, part) => sum + part.text.length, 0);
  const summary = extract ? 0 : written + (turn.parts.at(-1)?.of ?? 0); // it is read, too
  const said = turn.thinking.length + turn.answer.length;
  const model = turn.asked + said;
  const share = `≈ ${((100 * summary) / Math.max(model + summary, 1)).toFixed(1)} %`;
  return [...[turn.asked, said, turn.thinking.length, model, summary].map(about), share, about(model + summary)];
}

/** The figures of either API. @param {Record<string, any>} usage @param {{input: number | null, output: number | null, total: number | null}} [used] by the model, as noted @returns {string[]} */
function reported(usage, used) {
  const share = usage.reasoning_summary ?? { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  const all = { input: usage.input_tokens ?? usage.prompt_tokens, output: usage.output_tokens ?? usage.completion_tokens, total: usage.total_tokens };
  const model = used ?? { input: less(all.input, share.input_tokens), output: less(all.output, share.output_tokens), total: less(all.total, share.total_tokens) };
  const details = usage.output_tokens_details ?? usage.completion_tokens_details;
  const spent = share.total_tokens;
  const part = spent == null || !all.total ? "not reported" : `${((100 * spent) / all.total).toFixed(1)} %`;
  return [...[model.input, model.output, details?.reasoning_tokens, total(model), spent].map(tokens), part, tokens(all.total)];
}

/** Who wrote the summary, and what its figures leave out. @param {Turn} turn @param {boolean} extracts */
export function note(turn, extracts) {
  if (turn.usage === null) {
    if (turn.over) return "No usage was reported: these are estimates, one token per four characters.";
    const extract = extracts ? " The summary is an extract: it costs no tokens." : "";
    return `≈ is an estimate, one token per four characters; the response reports the count at its end.${extract}`;
  }
  const share = turn.usage.reasoning_summary;
  if (!share && turn.parts.length > 0) return "The model’s own server wrote the summary: its tokens are included in the model’s.";
  if (!share) return "This bill includes no summary.";
  const extract = share.model === "extractive";
  const writer = extract ? " An extract: sentences of the reasoning, no model." : share.model === null ? "" : ` Written by ${share.model}.`;
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
