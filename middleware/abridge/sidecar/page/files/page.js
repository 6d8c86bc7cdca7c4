// @ts-check
/** Puts the page together: the form, one exchange at a time, and the list of the last. */
import { BASE, ask, bodyOf, freshId, models } from "./ask.js";
import { by, make, setText } from "./dom.js";
import { Exchanges, recordOf } from "./exchanges.js";
import { fading } from "./flow.js";
import { Stage, inWords } from "./stage.js";
import { open } from "./summary.js";
import { legend } from "./timeline.js";
import { Turn } from "./turn.js";

const clock = () => performance.now() / 1000;

/** @type {AbortController | null} */
let running = null;
let summarizer = "";

const exchanges = new Exchanges(by("exchanges"), by("scale"), by("exchanges-wrong"), (answer) => {
  summarizer = answer.summarizer;
  const some = answer.exchanges.length > 0;
  const title = some ? "Point a client at this server" : "No exchange yet. Ask above, or point a client at this server";
  if (by("elsewhere-title").textContent === title) return;
  by("elsewhere-title").textContent = title;
  by("elsewhere").open = !some;
});

/** What the form holds. */
function question() {
  const [api, model, style, key] = ["api", "model", "style", "key"].map((id) => by(id).value);
  return { api, model: model.trim(), style, key: key.trim(), question: by("question").value.trim(), id: freshId() };
}

/** @param {string} id @param {string} words */
function complain(id, words) {
  setText(by(`${id}-wrong`), words);
  by(id).setAttribute("aria-invalid", String(words !== ""));
}

async function start() {
  const asked = question();
  complain("question", asked.question === "" ? "Type a question first." : "");
  complain("model", asked.model === "" ? "Name a model first." : "");
  const missing = [asked.question === "" && "question", asked.model === "" && "model"].find(Boolean);
  if (missing) {
    unfold();
    return by(missing).focus();
  }
  running?.abort();
  running = new AbortController();
  fold(asked);
  await exchange(asked, running);
}

/** The question alone, while it is answered. @param {ReturnType<typeof question>} asked */
function fold(asked) {
  by("asked").textContent = asked.question;
  by("asked-of").textContent = [asked.model, by("api").selectedOptions[0].textContent].join(" · ");
  by("form").hidden = true;
  by("asked-box").hidden = by("stop").hidden = false;
  by("new").hidden = true;
  by("asked").focus({ preventScroll: true });
}

function unfold() {
  by("form").hidden = false;
  by("asked-box").hidden = true;
}

/** @param {ReturnType<typeof question>} asked @param {AbortController} controller */
async function exchange(asked, controller) {
  const stage = new Stage(new Turn(asked.question.length, clock));
  stage.summarizer = summarizer;
  const current = () => running === controller;
  refuse("");
  const animated = animate(stage, current);
  const top = by("asked-box").getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 3) by("asked-box").scrollIntoView();
  const refused = await ask(asked, stage.turn, controller.signal).catch((error) => error);
  if (refused) stage.turn.end("failed");
  await animated;
  if (!current()) return;
  rest();
  by("said").textContent = inWords(stage.turn);
  if (refused) return turnDown(stage, refused);
  stage.record = await recordOf(asked.id);
  if (current()) stage.show();
  exchanges.watch();
}

/** @param {Stage} stage @param {any} refused */
function turnDown(stage, refused) {
  stage.clear();
  unfold();
  refuse(`No answer came. ${refused.message}`, refused.elsewhere);
  by("trouble").querySelector("button:not([hidden])").focus();
  exchanges.watch();
}

/** Show it again and again until it is over. @param {Stage} stage @param {() => boolean} current */
function animate(stage, current) {
  return new Promise((resolve) => {
    const frame = () => {
      if (current()) stage.show();
      if (stage.turn.over || !current()) resolve(undefined);
      else document.hidden ? setTimeout(frame, 200) : requestAnimationFrame(frame);
    };
    frame();
  });
}

/** Nothing runs any more. */
function rest() {
  const stopped = document.activeElement === by("stop");
  by("stop").hidden = true;
  by("new").hidden = false;
  if (stopped) by("new").focus();
}

/** @param {string} words @param {boolean} [elsewhere] */
function refuse(words, elsewhere = false) {
  by("trouble").firstElementChild.textContent = words;
  by("elsewhere-api").hidden = !elsewhere;
  by("trouble").hidden = words === "";
}

async function list() {
  try {
    const names = await models(by("key").value.trim());
    by("models").replaceChildren(...names.map((name) => make("option", { value: name })));
    if (by("model").value === "" && names.length > 0) by("model").value = names[0];
    complain("model", "");
  } catch (error) {
    complain("model", `The models cannot be listed. ${error instanceof Error ? error.message : ""} You can still type a name.`);
  }
  explain();
}

/** The command line that asks the same. */
function explain() {
  const asked = { ...question(), model: by("model").value.trim() || "your-model" };
  asked.question ||= "How many squares are on a chessboard?";
  const path = asked.api === "responses" ? "responses" : "chat/completions";
  const body = JSON.stringify(bodyOf(asked), null, 1).replaceAll(/\n +/g, " ").replaceAll("\n", " ").replaceAll("'", "'\\''");
  by("curl").textContent = `curl -N ${BASE}${path} \\\n  -H 'content-type: application/json' \\\n  -d '${body}'`;
}

async function copy() {
  getSelection()?.selectAllChildren(by("curl"));
  const done = await navigator.clipboard?.writeText(by("curl").textContent).then(() => true, () => false);
  by("said").textContent = by("copy").textContent = done ? "Copied" : "Selected";
  setTimeout(() => (by("copy").textContent = "Copy"), 2000);
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) start();
  else if (event.key === "Escape") running?.abort();
}

by("form").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  start();
});
by("form").addEventListener("input", explain);
by("stop").addEventListener("click", () => running?.abort());
by("key").addEventListener("change", list);
by("model").addEventListener("focus", () => by("model").select()); // one letter, and others are offered
by("copy").addEventListener("click", copy);
by("new").addEventListener("click", () => {
  unfold();
  by("question").select();
});
by("open").addEventListener("click", () => open(by("open").getAttribute("aria-expanded") === "false"));
for (const retry of document.querySelectorAll(".retry")) retry.addEventListener("click", start);
by("elsewhere-api").addEventListener("click", () => {
  by("api").value = "chat";
  explain();
  start();
});
for (const example of by("examples").querySelectorAll("button")) {
  example.addEventListener("click", () => {
    by("question").value = example.textContent;
    explain();
    by("question").focus();
  });
}
for (const id of ["asked", "summary", "thinking"]) fading(by(id));
by("now").after(legend());
document.addEventListener("keydown", pressed);
document.addEventListener("visibilitychange", () => exchanges.watch());
list();
exchanges.watch();
