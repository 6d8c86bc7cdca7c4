// @ts-check
/**
 * The picture of an exchange: thinking, what the answer waited, and the answer on one line, the parts
 * of the summary beneath, and the calls that wrote them. Places are percents, so it takes any width.
 */
import { draw } from "./dom.js";
import { countOf, inSeconds } from "./words.js";

/**
 * @typedef {{began: number, ended: number | null}} Mark
 * @typedef {{seconds: number | null, thinking: [number, number] | null, answer: [number, number] | null,
 *   held: number | null, parts: Mark[], calls: Mark[]}} Times
 */

const HEIGHT = 56;
const MANY = 6; // parts, whose times are no longer labelled one by one
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800];
const ROOMS = [10, 20, 40, 60, 120, 300, 600, 1800, 3600]; // in which bars grow, before all is rescaled

/** Whether there is anything to draw. @param {Times} times */
export function isDrawn({ thinking, answer, parts, calls }) {
  return thinking !== null || answer !== null || parts.length + calls.length > 0;
}

/** @param {Times} times @param {string} title @param {boolean} [runs] whether it still goes on */
export function timeline(times, title, runs = false) {
  const end = runs ? (ROOMS.find((room) => room > extent(times)) ?? extent(times)) : extent(times);
  const bars = [...waits(times), ...marks(times, times.seconds ?? end)].map((bar) => rectangle(bar, end));
  return draw(
    "svg",
    { class: "timeline", width: "100%", height: HEIGHT, role: "img", "aria-label": `${title}: ${described(times)}` },
    ...axis(end),
    ...bars,
  );
}

/** @param {Times} times */
function extent(times) {
  const known = [times.seconds, times.thinking?.[1], times.answer?.[1], ...times.parts.map((part) => part.ended)];
  return Math.max(0.01, ...known.map((time) => time ?? 0));
}

/** Where it was thought and answered by turns, neither is to hide the other. @param {Times} times @returns {[string, number, number, number, number][]} class, from, to, top, height */
function waits({ thinking, answer, held }) {
  const byTurns = thinking !== null && answer !== null && answer[0] < thinking[1];
  /** @type {[string, number, number, number, number][]} */
  const bars = [];
  if (thinking) bars.push(["thinking", ...thinking, 2, byTurns ? 6 : 12]);
  if (thinking && held) bars.push(["held", thinking[1], thinking[1] + held, 2, byTurns ? 6 : 12]);
  if (answer) bars.push(["answer", ...answer, byTurns ? 8 : 2, byTurns ? 6 : 12]);
  return bars;
}

/** @param {Times} times @param {number} now @returns {[string, number, number, number, number][]} */
function marks({ parts, calls }, now) {
  return [
    .../** @type {[string, number, number, number, number][]} */ (calls.map((call) => ["call", call.began, call.ended ?? now, 31, 2])),
    .../** @type {[string, number, number, number, number][]} */ (parts.map((part) => ["part", part.began, part.ended ?? now, 20, 6])),
  ];
}

/** @param {[string, number, number, number, number]} bar @param {number} end */
function rectangle([kind, from, to, top, height], end) {
  const x = Math.min(99.5, (100 * from) / end);
  const width = Math.max(0.4, Math.min(100 - x, (100 * (to - from)) / end));
  return draw("rect", { class: kind, x: `${x.toFixed(2)}%`, width: `${width.toFixed(2)}%`, y: top, height, rx: 1.5 });
}

/** @param {number} end */
function axis(end) {
  const step = STEPS.find((one) => end / one <= 6) ?? 3600;
  const ticks = [];
  for (let tick = 0; tick <= end + step / 1e6; tick += step) {
    const x = `${((100 * tick) / end).toFixed(2)}%`;
    const anchor = tick === 0 ? "start" : tick > 0.95 * end ? "end" : "middle";
    ticks.push(draw("line", { class: "tick", x1: x, x2: x, y1: 0, y2: 37 }));
    ticks.push(draw("text", { class: "tick", x, y: 51, "text-anchor": anchor }, label(tick, step)));
  }
  return ticks;
}

/** @param {number} tick @param {number} step */
function label(tick, step) {
  if (tick === 0) return "0";
  return `${tick.toFixed(step < 0.1 ? 2 : step < 1 ? 1 : 0)} s`;
}

/** @param {Mark[]} parts */
function begins(parts) {
  const times = parts.map((part) => inSeconds(part.began));
  return times.length > MANY ? `from ${times[0]} to ${times.at(-1)}` : `at ${times.join(", ")}`;
}

/** The picture, for those who do not see it. @param {Times} times */
export function described({ seconds, thinking, answer, held, parts }) {
  const said = [];
  if (thinking) said.push(`thought from ${inSeconds(thinking[0])} to ${inSeconds(thinking[1])}`);
  if (parts.length > 0) said.push(`${countOf(parts.length, "part")} of the summary, ${begins(parts)}`);
  if (held != null) said.push(`answer held for ${inSeconds(held)}`);
  if (answer) said.push(`answered from ${inSeconds(answer[0])} to ${inSeconds(answer[1])}`);
  if (seconds != null) said.push(`${inSeconds(seconds)} in all`);
  return said.join("; ") || "nothing was seen of it";
}
