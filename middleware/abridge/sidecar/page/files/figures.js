// @ts-check
/** Figures of an exchange, by the names and in the units that the bill and the list share. */
import { countOf, inSeconds } from "./words.js";

export const NAMES = {
  first: "First readable text",
  wait: "Wait for the answer",
  held: "Answer held",
  seconds: "In all",
  model: "Model",
  summary: "Summary",
};

/**
 * @typedef {keyof typeof NAMES} Name
 * @typedef {import("./turn.js").Turn} Turn
 * @typedef {{first: number | null, wait: number | null, held: number | null, seconds: number | null}} Times
 */

/** The times that Abridge has noted. @param {any} record @returns {Times} */
export function timesOf(record) {
  return { first: record.first_summary, wait: record.answer?.[0] ?? null, held: record.held, seconds: record.seconds };
}

/** The times as they were seen from here, until they are noted; a summary that upstream wrote is on no record. @param {Turn} turn @param {any} record @returns {Times} */
export function timesSeen(turn, record) {
  const seen = { first: turn.readable, wait: turn.answered?.[0] ?? null, held: turn.over && !turn.answered ? null : turn.held, seconds: turn.now() };
  if (record === null) return seen;
  const noted = timesOf(record);
  return { ...noted, first: noted.first ?? seen.first };
}

/** @param {number | null | undefined} count */
export function tokens(count) {
  return count == null ? "not reported" : countOf(count, "token");
}

/** What the list says of an exchange. @param {any} record @returns {[Name, string][]} */
export function figuresOf(record) {
  const known = /** @type {[Name, number | null][]} */ (Object.entries(timesOf(record))).filter(([, time]) => time != null);
  const times = known.map(([name, time]) => /** @type {[Name, string]} */ ([name, inSeconds(time ?? 0)]));
  const counts = /** @type {[Name, number | null][]} */ ([["model", total(record.used)], ["summary", total(record.spent)]]);
  return [...times, ...counts.filter(([, count]) => count !== null).map(([name, count]) => /** @type {[Name, string]} */ ([name, tokens(count)]))];
}

/** @param {{input: number | null, output: number | null, total: number | null}} spent */
export function total(spent) {
  return spent.total ?? (spent.input === null || spent.output === null ? null : spent.input + spent.output);
}
