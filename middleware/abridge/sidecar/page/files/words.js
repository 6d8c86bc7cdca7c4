// @ts-check
/** What went wrong, in words. */

const LONGEST = 500; // characters of a reason that somebody else gave

export class Refused extends Error {
  /** @param {string} words @param {boolean} [elsewhere] whether the other API is worth trying */
  constructor(words, elsewhere = false) {
    super(words);
    this.elsewhere = elsewhere;
  }
}

export function unreachable() {
  return new Refused(`Abridge cannot be reached at ${location.host}. Is it still running?`);
}

/** @param {Response} response @param {string} api what was asked for @returns {Promise<Refused>} */
export async function refusal(response, api) {
  const reason = saidIn(await response.text().catch(() => ""));
  const because = reason === "" ? "" : ` Reason: ${sentence(reason)}`;
  const { status } = response;
  if (status === 401) return new Refused(`The model’s server requires another API key (${status}).${because}`);
  if (api === "responses" && (status === 404 || status === 405)) {
    return new Refused(`The model’s server does not support Responses (${status}).${because}`, true);
  }
  if (status === 404) return new Refused(`The model’s server does not have this (404).${because}`);
  if (status === 429) return new Refused(`The model’s server is receiving too many requests (429).${because}`);
  if (status >= 500) return new Refused(`The model’s server failed (${status}).${because}`);
  return new Refused(`The request was refused (${status}).${because}`);
}

/** @param {string} body */
function saidIn(body) {
  try {
    const parsed = [JSON.parse(body)].flat()[0];
    const places = [parsed.error?.message, parsed.error, parsed.message, parsed.detail?.[0]?.msg, parsed.detail];
    return places.find((place) => typeof place === "string")?.slice(0, LONGEST) ?? "";
  } catch {
    return "";
  }
}

/** A reason that somebody else gave, or that none was given, with a full stop. @param {string | null | undefined} reason */
export function sentence(reason) {
  const said = reason?.trim() || "no reason was given";
  return /[.!?…]$/.test(said) ? said : `${said}.`;
}

/** @param {number} seconds */
export function inSeconds(seconds) {
  return `${seconds.toFixed(seconds < 1 ? 2 : 1)} s`;
}

/** @param {number} count @param {string} one */
export function countOf(count, one) {
  return `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
}
