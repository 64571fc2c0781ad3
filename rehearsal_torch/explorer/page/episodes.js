// The page of episodes: which one, how many actions may differ, and what the model says of the sequence.

import { key, number } from "/page/chart.js";
import { course } from "/page/courses.js";
import { at, start, bullets, busy, capital, head, latest, create, paragraphs } from "/page/page.js";

let run = null;
// What the controls hold. `own` tells a sequence that was put together here from one that a search is asked for.
const state = { episode: 0, changes: 0, seconds: 20, fixed: new Set(), own: false, actions: [] };
// The episode that is shown; `ready` says whether it is the selected one.
let episode = null, answer = null, ready = false;

// ---- The grid

// A step in words: by the time of the table where it is known.
const stepTitle = (step) => `${run.step} ${run.start + step}`;

const actionName = (action) => run.actions[action].join(", ");

// The doses of a step under the sequence: one that keeps its level stays as it was given.
function doses(step) {
  const action = state.actions[step] ?? episode.actions[step];
  const chosenLevels = run.actions[action], observedLevels = run.actions[episode.actions[step]];
  return episode.given[step].map((dose, coordinate) => (chosenLevels[coordinate] === observedLevels[coordinate] ? dose : chosenLevels[coordinate]));
}

function showGrid() {
  // Controls are created anew: the focus stays where it was.
  const focusedId = at("grid").contains(document.activeElement) ? document.activeElement.id : "";
  const heads = [run.step, ...run.doses, "Action", "Keep as it was"];
  at("grid-heads").replaceChildren(...heads.map((text) => create("th", { scope: "col" }, text)));
  at("grid").replaceChildren(...episode.given.map((observedDoses, step) => {
    const newDoses = doses(step), differs = state.actions[step] !== undefined && state.actions[step] !== episode.actions[step];
    const cells = observedDoses.map((before, coordinate) => create("td", { "data-head": run.doses[coordinate] },
      differs && before !== newDoses[coordinate] ? create("strong", {}, `${before} → ${newDoses[coordinate]}`) : before));
    const row = create("tr", differs ? { class: "altered" } : {}, create("th", { scope: "row" }, stepTitle(step)), ...cells);
    row.append(create("td", { "data-head": "Action" }, actionSelect(step)), create("td", { "data-head": "Keep" }, keepBox(step)));
    return row;
  }));
  if (focusedId) at(focusedId)?.focus();
}

function actionSelect(step) {
  const choices = episode.choices[step] ?? [];
  if (!choices.length) return "stays as it was";
  const options = [[episode.actions[step], "as it was"], ...choices.map((action) => [action, actionName(action)])];
  const select = create("select", { "aria-label": `action at ${stepTitle(step)}`, id: `action-${step}` },
    ...options.map(([action, text]) => create("option", { value: String(action) }, text)));
  select.value = String(state.actions[step]);
  select.disabled = state.fixed.has(step);
  select.addEventListener("change", () => {
    state.own = true;
    state.actions[step] = Number(select.value);
    showGrid();
    update();
  });
  return select;
}

function keepBox(step) {
  const isOpen = episode.open.includes(step);
  const box = create("input", { type: "checkbox", "aria-label": `keep ${stepTitle(step)} as it was`, id: `keep-${step}` });
  box.checked = !isOpen || state.fixed.has(step);
  box.disabled = !isOpen;
  box.addEventListener("change", () => {
    if (box.checked) state.fixed.add(step);
    else state.fixed.delete(step);
    state.own = false;
    state.actions = [...episode.actions];
    limitChanges();
    showGrid();
    update();
  });
  return box;
}

// As many changes as there are steps that may change.
function limitChanges() {
  const most = episode.most - state.fixed.size;
  at("changes").max = String(most);
  state.changes = Math.min(state.changes, most);
  at("changes").value = String(state.changes);
  at("changes-shown").textContent = String(state.changes);
  at("changes-hint").textContent = `from 0 to ${most}: ${most} of ${episode.steps} steps may change`;
}

// ---- The answer

function question() {
  if (!ready) return null;
  if (state.own) return { episode: state.episode, actions: state.actions };
  return { episode: state.episode, changes: state.changes, fixed: [...state.fixed].sort((one, other) => one - other), seconds: state.seconds };
}

let ask, loadEpisode, clockTimer, startedAt, searchTimer;

function showProgress(text, seconds) {
  clearInterval(clockTimer);
  at("working").hidden = !text;
  at("clock").textContent = "";
  if (!text) return;
  at("working-said").textContent = text;
  startedAt = performance.now();
  const progress = at("progress");
  if (seconds) progress.max = seconds;
  else progress.removeAttribute("max");
  progress.removeAttribute("value");
  clockTimer = setInterval(() => {
    const elapsed = (performance.now() - startedAt) / 1000;
    if (seconds) progress.value = Math.min(elapsed, seconds);
    at("clock").textContent = seconds ? `${elapsed.toFixed(0)} s, at most about ${seconds} s` : `${elapsed.toFixed(0)} s`;
  }, 500);
}

// A number that answers an earlier question is not left standing.
function clearAnswer() {
  answer = null;
  at("answer").hidden = true;
  at("message").hidden = true;
  at("courses").classList.add("waiting");
}

function update() {
  clearTimeout(searchTimer);
  clearAnswer();
  at("again").hidden = !state.own;
  at("grid").classList.toggle("waiting", !state.own);
  showProgress(state.own ? "Replaying your sequence" : `Searching among sequences with at most ${state.changes} changed actions`,
    state.own ? 0 : state.seconds);
  // A slider passes through numbers that are not meant; an action is chosen at once.
  searchTimer = setTimeout(ask, state.own ? 0 : 250);
}

// The time of a search begins when it is its turn.
busy.again = () => {
  startedAt = performance.now();
  at("working-said").textContent = "Waiting for the answer to another page, then searching";
};

function showFailure(text) {
  showProgress("");
  at("grid").classList.remove("waiting");
  at("answer").hidden = true;
  at("message").textContent = text;
  at("message").hidden = false;
}

function showAnswer(result) {
  showProgress("");
  at("grid").classList.remove("waiting");
  answer = result;
  if (!state.own) {
    state.actions = [...episode.actions];
    result.actions.forEach((action, step) => { state.actions[step] = action; });
    showGrid();
  }
  at("message").hidden = true;
  at("answer").hidden = false;
  at("answer").className = `case ${result.withheld && result.changed.length ? "refused" : result.undecided ? "refused" : result.status === "leave" ? "none" : ""}`;
  at("headline").textContent = result.headline;
  at("before").textContent = number(result.observed);
  at("after").hidden = result.value === null || !result.changed.length;
  at("point").textContent = result.value === null ? "" : number(result.value);
  const [low, high] = (result.range ?? [0, 0]).map(number);
  at("between").textContent = !result.range ? "by the model"
    : low === high ? "by all models of the ensemble" : `by the model; ${low} to ${high} over the models of the ensemble`;
  at("withheld").textContent = result.withheld ? `${capital(result.withheld)}.` : "";
  at("withheld").hidden = !result.withheld;
  at("state").textContent = [result.state, result.state && `It took ${number(result.seconds)} s.`].filter(Boolean).join(" ");
  at("said").replaceChildren(...paragraphs(result.said));
  at("warnings").replaceChildren(...bullets(result.warnings));
  at("overturned").textContent = result.overturned;
  at("overturned").hidden = !result.overturned;
  showCourses();
}

function showCourses() {
  const series = answer?.course ?? episode.course, changedSteps = answer?.changed ?? [];
  const isReplayed = Boolean(series.rewards.after), hasRange = Boolean(series.rewards.lower);
  at("courses").classList.remove("waiting");
  at("courses-note").textContent = answer?.withheld && answer.changed.length
    ? "Nothing is drawn of the replay: it lies outside the data." : episode.outside ? `${capital(episode.outside)}.` : "";
  at("key").replaceChildren(key([["none", "as observed"], ...(isReplayed ? [["line", "under these actions, by the model"]] : []),
    ...(hasRange ? [["band", "range over the models"]] : []), ...(changedSteps.length ? [["altered", "step with a changed action"]] : [])]));
  const quantities = [{ ...series.rewards, unit: "" }, ...series.states.map((quantity) => ({ ...quantity, unit: run.units[quantity.name] ?? "" }))];
  const panels = quantities.map((quantity) => {
    const drawing = create("div"), heading = quantity.unit ? `${quantity.name} (${quantity.unit})` : quantity.name;
    return [create("div", { class: "panel" }, create("h3", {}, heading), drawing), () => course(drawing, quantity, changedSteps, heading, run.time, run.start)];
  });
  at("courses").replaceChildren(...panels.map(([panel]) => panel));
  panels.forEach(([, draw]) => draw());
}

// ---- The episode

function pick(index) {
  clearTimeout(searchTimer);
  state.episode = index;
  state.own = ready = false;
  state.fixed.clear();
  clearAnswer();
  showProgress("Reading the episode", 0);
  loadEpisode();
}

function showEpisode(response) {
  episode = response;
  ready = true;
  state.actions = [...response.actions];
  limitChanges();
  showGrid();
  showCourses();
  update();
}

function fill() {
  head(run);
  at("episode-head").textContent = `The ${run.subject}`;
  at("episode-label").textContent = capital(run.subject);
  at("episode").replaceChildren(...run.episodes.map((text, index) => create("option", { value: String(index) }, text)));
  at("episode-note").textContent = run.more ? `The first ${run.episodes.length} are listed; the run has ${run.more} more.` : "";
  at("seconds").replaceChildren(...run.seconds.map((value) => create("option", { value: String(value) }, `${value} seconds`)));
  at("seconds").value = String(state.seconds);
  state.changes = run.changes;
  at("episode").addEventListener("change", () => pick(Number(at("episode").value)));
  at("changes").addEventListener("input", () => {
    state.changes = at("changes").valueAsNumber;
    at("changes-shown").textContent = String(state.changes);
    state.own = false;
    update();
  });
  at("seconds").addEventListener("change", () => { state.seconds = Number(at("seconds").value); state.own = false; update(); });
  at("again").addEventListener("click", () => { state.own = false; update(); });
  at("blank").addEventListener("click", () => { state.own = true; state.actions = [...episode.actions]; showGrid(); update(); });
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width && episode) { width = window.innerWidth; showCourses(); } });
}

start((description) => {
  run = description;
  loadEpisode = latest("/api/episode", () => ({ episode: state.episode }), showEpisode, showFailure);
  ask = latest((query) => (query.actions ? "/api/replay" : "/api/look-back"), question, showAnswer, showFailure);
  fill();
  at("explorer").hidden = false;
  pick(0);
});
