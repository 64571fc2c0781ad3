// The page of episodes: which one, how many actions may differ, and what the model says of the sequence.

import { key, number } from "/page/chart.js";
import { course } from "/page/courses.js";
import { at, begun, bullets, busy, capital, head, latest, made, paragraphs } from "/page/page.js";

let run = null;
// What the controls hold. `own` tells a sequence that was put together here from one that a search is asked for.
const state = { episode: 0, changes: 0, seconds: 20, fixed: new Set(), own: false, actions: [] };
// The episode that is shown; `ready` says whether it is the one that is picked.
let now = null, answer = null, ready = false;

// ---- The grid

// What the reader calls a step: by the time of the table where it is known.
const titled = (step) => `${run.step} ${run.start + step}`;

const name = (action) => run.actions[action].join(", ");

// The doses of a step under the sequence: one that keeps its level stays as it was given.
function doses(step) {
  const action = state.actions[step] ?? now.actions[step];
  const set = run.actions[action], levels = run.actions[now.actions[step]];
  return now.given[step].map((given, place) => (set[place] === levels[place] ? given : set[place]));
}

function showGrid() {
  // Controls are made anew: the keyboard stays on the one that it was on.
  const here = at("grid").contains(document.activeElement) ? document.activeElement.id : "";
  const heads = [run.step, ...run.doses, "Action", "Keep as it was"];
  at("grid-heads").replaceChildren(...heads.map((text) => made("th", { scope: "col" }, text)));
  at("grid").replaceChildren(...now.given.map((given, step) => {
    const other = doses(step), differs = state.actions[step] !== undefined && state.actions[step] !== now.actions[step];
    const cells = given.map((before, place) => made("td", { "data-head": run.doses[place] },
      differs && before !== other[place] ? made("strong", {}, `${before} → ${other[place]}`) : before));
    const row = made("tr", differs ? { class: "altered" } : {}, made("th", { scope: "row" }, titled(step)), ...cells);
    row.append(made("td", { "data-head": "Action" }, chooser(step)), made("td", { "data-head": "Keep" }, keeper(step)));
    return row;
  }));
  if (here) at(here)?.focus();
}

function chooser(step) {
  const choices = now.choices[step] ?? [];
  if (!choices.length) return "stays as it was";
  const options = [[now.actions[step], "as it was"], ...choices.map((action) => [action, name(action)])];
  const found = made("select", { "aria-label": `action at ${titled(step)}`, id: `action-${step}` },
    ...options.map(([action, text]) => made("option", { value: String(action) }, text)));
  found.value = String(state.actions[step]);
  found.disabled = state.fixed.has(step);
  found.addEventListener("change", () => {
    state.own = true;
    state.actions[step] = Number(found.value);
    showGrid();
    changed();
  });
  return found;
}

function keeper(step) {
  const open = now.open.includes(step);
  const found = made("input", { type: "checkbox", "aria-label": `keep ${titled(step)} as it was`, id: `keep-${step}` });
  found.checked = !open || state.fixed.has(step);
  found.disabled = !open;
  found.addEventListener("change", () => {
    if (found.checked) state.fixed.add(step);
    else state.fixed.delete(step);
    state.own = false;
    state.actions = [...now.actions];
    limit();
    showGrid();
    changed();
  });
  return found;
}

// As many changes as there are steps that may change.
function limit() {
  const most = now.most - state.fixed.size;
  at("changes").max = String(most);
  state.changes = Math.min(state.changes, most);
  at("changes").value = String(state.changes);
  at("changes-shown").textContent = String(state.changes);
  at("changes-hint").textContent = `from 0 to ${most}: ${most} of ${now.steps} steps may change`;
}

// ---- The answer

function question() {
  if (!ready) return null;
  if (state.own) return { episode: state.episode, actions: state.actions };
  return { episode: state.episode, changes: state.changes, fixed: [...state.fixed].sort((one, other) => one - other), seconds: state.seconds };
}

let ask, look, ticking, since, later;

function working(said, most) {
  clearInterval(ticking);
  at("working").hidden = !said;
  at("clock").textContent = "";
  if (!said) return;
  at("working-said").textContent = said;
  since = performance.now();
  const progress = at("progress");
  if (most) progress.max = most;
  else progress.removeAttribute("max");
  progress.removeAttribute("value");
  ticking = setInterval(() => {
    const spent = (performance.now() - since) / 1000;
    if (most) progress.value = Math.min(spent, most);
    at("clock").textContent = most ? `${spent.toFixed(0)} s, at most about ${most} s` : `${spent.toFixed(0)} s`;
  }, 500);
}

// A number that answers an earlier question is not left standing.
function cleared() {
  answer = null;
  at("answer").hidden = true;
  at("message").hidden = true;
  at("courses").classList.add("waiting");
}

function changed() {
  clearTimeout(later);
  cleared();
  at("again").hidden = !state.own;
  at("grid").classList.toggle("waiting", !state.own);
  working(state.own ? "Replaying your sequence" : `Searching among sequences with at most ${state.changes} changed actions`,
    state.own ? 0 : state.seconds);
  // A slider passes through numbers that are not meant; an action is chosen at once.
  later = setTimeout(ask, state.own ? 0 : 250);
}

// The time of a search begins when it is its turn.
busy.again = () => {
  since = performance.now();
  at("working-said").textContent = "Waiting for the answer to another page, then searching";
};

function failed(text) {
  working("");
  at("grid").classList.remove("waiting");
  at("answer").hidden = true;
  at("message").textContent = text;
  at("message").hidden = false;
}

function showAnswer(found) {
  working("");
  at("grid").classList.remove("waiting");
  answer = found;
  if (!state.own) {
    state.actions = [...now.actions];
    found.actions.forEach((action, step) => { state.actions[step] = action; });
    showGrid();
  }
  at("message").hidden = true;
  at("answer").hidden = false;
  at("answer").className = `case ${found.withheld && found.changed.length ? "refused" : found.undecided ? "refused" : found.status === "leave" ? "none" : ""}`;
  at("headline").textContent = found.headline;
  at("before").textContent = number(found.observed);
  at("after").hidden = found.value === null || !found.changed.length;
  at("point").textContent = found.value === null ? "" : number(found.value);
  const [low, high] = (found.range ?? [0, 0]).map(number);
  at("between").textContent = !found.range ? "by the model"
    : low === high ? "by all models of the ensemble" : `by the model; ${low} to ${high} over the models of the ensemble`;
  at("withheld").textContent = found.withheld ? `${capital(found.withheld)}.` : "";
  at("withheld").hidden = !found.withheld;
  at("state").textContent = [found.state, found.state && `It took ${number(found.seconds)} s.`].filter(Boolean).join(" ");
  at("said").replaceChildren(...paragraphs(found.said));
  at("warnings").replaceChildren(...bullets(found.warnings));
  at("overturned").textContent = found.overturned;
  at("overturned").hidden = !found.overturned;
  showCourses();
}

function showCourses() {
  const found = answer?.course ?? now.course, marks = answer?.changed ?? [];
  const replayed = Boolean(found.rewards.after), several = Boolean(found.rewards.lower);
  at("courses").classList.remove("waiting");
  at("courses-note").textContent = answer?.withheld && answer.changed.length
    ? "Nothing is drawn of the replay: it lies outside the data." : now.outside ? `${capital(now.outside)}.` : "";
  at("key").replaceChildren(key([["none", "as observed"], ...(replayed ? [["line", "under these actions, by the model"]] : []),
    ...(several ? [["band", "range over the models"]] : []), ...(marks.length ? [["altered", "step with a changed action"]] : [])]));
  const every = [{ ...found.rewards, unit: "" }, ...found.states.map((one) => ({ ...one, unit: run.units[one.name] ?? "" }))];
  const panels = every.map((one) => {
    const drawing = made("div"), heading = one.unit ? `${one.name} (${one.unit})` : one.name;
    return [made("div", { class: "panel" }, made("h3", {}, heading), drawing), () => course(drawing, one, marks, heading, run.time, run.start)];
  });
  at("courses").replaceChildren(...panels.map(([panel]) => panel));
  panels.forEach(([, draw]) => draw());
}

// ---- The episode

function pick(which) {
  clearTimeout(later);
  state.episode = which;
  state.own = ready = false;
  state.fixed.clear();
  cleared();
  working("Reading the episode", 0);
  look();
}

function showEpisode(found) {
  now = found;
  ready = true;
  state.actions = [...found.actions];
  limit();
  showGrid();
  showCourses();
  changed();
}

function fill() {
  head(run);
  at("episode-head").textContent = `The ${run.subject}`;
  at("episode-label").textContent = capital(run.subject);
  at("episode").replaceChildren(...run.episodes.map((text, place) => made("option", { value: String(place) }, text)));
  at("episode-note").textContent = run.more ? `The first ${run.episodes.length} are listed; the run has ${run.more} more.` : "";
  at("seconds").replaceChildren(...run.seconds.map((value) => made("option", { value: String(value) }, `${value} seconds`)));
  at("seconds").value = String(state.seconds);
  state.changes = run.changes;
  at("episode").addEventListener("change", () => pick(Number(at("episode").value)));
  at("changes").addEventListener("input", () => {
    state.changes = at("changes").valueAsNumber;
    at("changes-shown").textContent = String(state.changes);
    state.own = false;
    changed();
  });
  at("seconds").addEventListener("change", () => { state.seconds = Number(at("seconds").value); state.own = false; changed(); });
  at("again").addEventListener("click", () => { state.own = false; changed(); });
  at("blank").addEventListener("click", () => { state.own = true; state.actions = [...now.actions]; showGrid(); changed(); });
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width && now) { width = window.innerWidth; showCourses(); } });
}

begun((found) => {
  run = found;
  look = latest("/api/episode", () => ({ episode: state.episode }), showEpisode, failed);
  ask = latest((asking) => (asking.actions ? "/api/replay" : "/api/look-back"), question, showAnswer, failed);
  fill();
  at("explorer").hidden = false;
  pick(0);
});
