// The page: what is asked, and what comes back. Nothing is computed here; every number is the server's.

import { curve, interval, key, number, outcomes } from "/page/chart.js";
import { asked, at, begun, bullets, capital, head, latest, made, paragraphs } from "/page/page.js";

const OWN = "own";
let run = null;
// What the controls hold: the case, its context, the set of variables, and a value for every action.
const state = { case: OWN, given: {}, set: 0, values: {} };
let charts = null;

// ---- The case

const names = () => run.sets[state.set];

function bounds(name) {
  const own = state.case === OWN ? undefined : run.cases[state.case].bounds[name];
  return own ?? run.actions[name].bounds;
}

function offered(name) {
  const [low, high] = bounds(name);
  return (run.actions[name].levels ?? []).filter((level) => level >= low && level <= high);
}

function nearest(name, value) {
  const [low, high] = bounds(name), levels = offered(name);
  if (levels.length) return levels.reduce((one, other) => (Math.abs(other - value) < Math.abs(one - value) ? other : one));
  return Math.min(high, Math.max(low, value));
}

function choose(which) {
  state.case = which;
  const one = which === OWN ? null : run.cases[which];
  if (one) state.given = { ...one.given };
  const place = one?.set ? run.sets.findIndex((each) => each.length === Object.keys(one.set).length
    && each.every((name) => name in one.set)) : -1;
  if (place >= 0) {
    state.set = place;
    Object.assign(state.values, one.set);
  }
  for (const name of Object.keys(run.actions)) {
    const [low, high] = bounds(name);
    state.values[name] = nearest(name, Number.isFinite(state.values[name]) ? state.values[name] : (low + high) / 2);
  }
  at("case").value = String(which);
  at("set").value = String(state.set);
  showContext();
  showSettings();
  changed();
}

// A variable of texts is chosen by its texts; what is sent are the numbers of its columns.
function choice(one, id) {
  const list = made("select", { id, "data-name": one.name, "aria-describedby": `${id}-hint` },
    ...one.levels.map((level, place) => made("option", { value: String(place) }, level.text)));
  const now = one.levels.findIndex((level) => Object.entries(level.values).every(([name, value]) => state.given[name] === value));
  list.value = String(Math.max(now, 0));
  Object.assign(state.given, one.levels[Math.max(now, 0)].values);
  return list;
}

function showContext() {
  const hint = (one) => (one.range ? `observations: ${number(one.range[0])} to ${number(one.range[1])}` : "");
  at("context").replaceChildren(...run.context.map((one, place) => {
    const id = `given-${place}`;
    const input = one.levels ? choice(one, id)
      : made("input", { type: "number", step: "any", id, "data-name": one.name, "aria-describedby": `${id}-hint` });
    if (!one.levels) input.value = one.name in state.given ? String(state.given[one.name]) : "";
    input.addEventListener("input", () => {
      if (one.levels) Object.assign(state.given, one.levels[Number(input.value)].values);
      else state.given[one.name] = input.valueAsNumber;
      if (state.case !== OWN) {
        // A case that is changed is another case: its own bounds do not apply to it.
        state.case = OWN;
        at("case").value = OWN;
        for (const name of Object.keys(run.actions)) state.values[name] = nearest(name, state.values[name]);
        showSettings();
      }
      changed();
    });
    return made("div", { class: "field" }, made("label", { for: id }, one.name), input,
      made("span", { class: "hint", id: `${id}-hint` }, hint(one)));
  }));
  if (!run.context.length) at("context").replaceChildren(made("p", {}, "Nothing is known of a case before deciding."));
}

// ---- The action

// The present value of an action, where the case states one.
const present = (name) => (state.case === OWN ? undefined : run.cases[state.case].present[name]);

// A value of an action: the text of a level, where it has texts.
const valued = (name, value) => run.actions[name].texts?.[value] ?? number(value);

function nowAt(name) {
  return present(name) === undefined ? "" : `; now ${valued(name, present(name))}`;
}

function showSettings() {
  at("settings").replaceChildren(...names().map((name, place) => {
    const id = `set-${place}`, levels = offered(name), [low, high] = bounds(name);
    const slider = made("input", { type: "range", id, "data-name": name, "aria-describedby": `${id}-hint` });
    let other;
    const hint = (levels.length ? `one of ${levels.length} values` : `from ${number(low)} to ${number(high)}`) + nowAt(name);
    if (levels.length) {
      [slider.min, slider.max, slider.step] = [0, levels.length - 1, 1];
      other = made("output", { for: id });
      const tell = () => { other.textContent = valued(name, state.values[name]); slider.setAttribute("aria-valuetext", other.textContent); };
      slider.value = levels.indexOf(state.values[name]);
      slider.addEventListener("input", () => { state.values[name] = levels[slider.valueAsNumber]; tell(); changed(); });
      tell();
    } else {
      [slider.min, slider.max, slider.step] = [low, high, "any"];
      other = made("input", { type: "number", step: "any", "aria-label": `${name}, as a number`, "data-name": name });
      slider.value = state.values[name];
      other.value = shortly(state.values[name]);
      slider.addEventListener("input", () => {
        const fine = (high - low) / 400;
        const [from, to] = [low, high];
        // Values of few digits; the ends of the range are kept as they are.
        const short = fine > 0 ? Number((Math.round(slider.valueAsNumber / grid(fine)) * grid(fine)).toPrecision(12)) : low;
        state.values[name] = Math.min(to, Math.max(from, short));
        other.value = shortly(state.values[name]);
        changed();
      });
      other.addEventListener("input", () => {
        state.values[name] = other.valueAsNumber;
        if (Number.isFinite(state.values[name])) slider.value = state.values[name];
        changed();
      });
    }
    return made("div", { class: "field" }, made("label", { for: id }, name), made("div", { class: "pair" }, slider, other),
      made("span", { class: "hint", id: `${id}-hint` }, hint));
  }));
  const own = state.case === OWN ? [] : names().filter((name) => name in run.cases[state.case].bounds);
  at("bounds-note").textContent = own.length ? `The bounds of ${own.join(" and ")} are those of this case.` : "The bounds are those of the task.";
}

const grid = (size) => 10 ** Math.floor(Math.log10(size));
const shortly = (value) => String(Number(value.toPrecision(8)));

// What is wrong with the numbers that were typed; marks the fields.
function faults() {
  const found = [];
  for (const input of document.querySelectorAll("#context input")) {
    const wrong = !Number.isFinite(input.valueAsNumber);
    input.setAttribute("aria-invalid", String(wrong));
    if (wrong) found.push(`${input.dataset.name}: expected a number.`);
  }
  for (const input of document.querySelectorAll("#settings input[type=number]")) {
    const value = input.valueAsNumber, name = input.dataset.name, [low, high] = bounds(name);
    const wrong = !(value >= low && value <= high);
    input.setAttribute("aria-invalid", String(wrong));
    if (wrong) found.push(`${name}: expected a number from ${number(low)} to ${number(high)}.`);
  }
  return found;
}

// ---- The answer

function question() {
  if (faults().length) return null;
  const set = Object.fromEntries(names().map((name) => [name, state.values[name]]));
  const given = Object.fromEntries(run.context.flatMap((one) => (one.levels ? Object.keys(one.levels[0].values) : [one.name]))
    .map((name) => [name, state.given[name]]));
  return { case: state.case === OWN ? null : state.case, given, set };
}

function blank(text) {
  at("answer").hidden = true;
  at("message").textContent = text;
  at("message").hidden = !text;
  charts = null;
  showCharts();
}

function showAnswer(found) {
  at("message").hidden = true;
  at("answer").hidden = false;
  at("answer").classList.remove("waiting");
  const one = found.estimate;
  at("answer").classList.toggle("refused", Boolean(found.withheld));
  at("point").textContent = found.told ? found.told.point : "";
  at("between").textContent = found.told ? found.told.interval : "";
  at("point").parentElement.hidden = !one;
  if (one) {
    interval(at("interval"), one, found.baseline, found.unchanged, found.told);
    at("interval").append(key([["bar", "interval"], ...(found.baseline ? [["none", `no action, ${found.told.baseline}`]] : []),
      ...(found.unchanged ? [["now", `present values kept, ${found.told.unchanged}`]] : [])]));
  } else {
    at("interval").replaceChildren();
  }
  at("sentence").textContent = capital(found.sentence);
  at("against").textContent = [found.against, found.also && capital(found.also)].filter(Boolean).map((text) => `${text}.`).join(" ");
  at("warnings").replaceChildren(...bullets(found.warnings));
  at("near").textContent = [found.beyond, found.near === null ? ""
    : `The 5th nearest observation is ${found.near} standard deviations away.`].filter(Boolean).join(" ");
}

function showCharts() {
  at("curves").classList.remove("waiting");
  at("outcomes").classList.remove("waiting");
  const panels = charts ? charts.curves.map((one) => {
    const panel = made("div", { class: "panel" }), drawing = made("div");
    const now = charts.present[one.name];
    panel.append(drawing, key([["line", "claim"], ["band", "interval"], ["none", "no action"], ["here", "as set above"],
      ...(now === undefined ? [] : [["now", `present value, ${valued(one.name, now)}`]]), ["gone", "outside the data"]]
      .filter(([kind]) => kind !== "none" || charts.baseline)));
    return [panel, () => curve(drawing, one, charts.baseline, state.values[one.name], now)];
  }) : [];
  at("curves").replaceChildren(...panels.map(([panel]) => panel));
  panels.forEach(([, draw]) => draw());
  const draws = charts?.outcomes;
  at("outcomes-section").hidden = Boolean(charts) && !draws && !charts.withheld;
  at("outcomes-note").textContent = draws ? `Of the outcomes that the fitted model expects, ${share(draws.share)} lie in the desired region after this setting`
    + (draws.share_before === null ? "." : `, ${share(draws.share_before)} with no action.`) : charts ? "No outcomes are drawn outside the data." : "";
  const drawings = draws ? draws.coordinates.map((one) => {
    const panel = made("div", { class: "panel" }), drawing = made("div");
    panel.append(drawing, key([["after", "after this setting"], ["none", "no action"], ["region", "desired region"]]
      .filter(([kind]) => (kind !== "none" || one.before) && (kind !== "region" || one.lower !== null || one.upper !== null))));
    return [panel, () => outcomes(drawing, one)];
  }) : [];
  at("outcomes").replaceChildren(...drawings.map(([panel]) => panel));
  drawings.forEach(([, draw]) => draw());
}

const share = (value) => `${(100 * value).toFixed(1)}%`;

let ask, chart, later, waited;

function changed() {
  at("recommended").hidden = true;
  const wrong = faults();
  clearTimeout(waited);
  clearTimeout(later);
  if (wrong.length) {
    blank(wrong.join(" "));
    return;
  }
  waited = setTimeout(wait, 250);
  ask();
  at("curves").classList.add("waiting");
  at("outcomes").classList.add("waiting");
  later = setTimeout(chart, 200);
}

// A number that answers an earlier question is not left standing.
function wait() {
  at("answer").classList.add("waiting");
  at("point").parentElement.hidden = true;
  at("interval").replaceChildren();
  at("sentence").textContent = "Asking ...";
  at("against").textContent = at("near").textContent = "";
  at("warnings").replaceChildren();
}

async function recommend() {
  const now = question();
  if (now === null) return;
  at("recommend").disabled = true;
  try {
    const found = await asked("/api/recommend", { case: now.case, given: now.given });
    at("recommended").hidden = false;
    at("recommended").className = `case ${found.undecided ? "refused" : found.status === "leave" ? "none" : ""}`;
    at("recommended-head").textContent = found.headline;
    at("recommended-said").replaceChildren(...paragraphs(found.said));
    at("recommended-warnings").replaceChildren(...bullets(found.warnings));
    at("take").hidden = !found.setting;
    at("take").onclick = () => {
      state.set = run.sets.findIndex((each) => each.length === Object.keys(found.setting).length && each.every((name) => name in found.setting));
      Object.assign(state.values, found.setting);
      at("set").value = String(state.set);
      showSettings();
      changed();
      at("answer-head").scrollIntoView({ block: "start" });
    };
  } catch (error) {
    at("message").textContent = error.message;
    at("message").hidden = false;
  }
  at("recommend").disabled = false;
}

function fill() {
  head(run);
  const own = made("option", { value: OWN }, "a case of your own");
  at("case").replaceChildren(...run.cases.map((one, place) => made("option", { value: String(place) }, one.name)), own);
  at("case-note").textContent = run.more ? `The first ${run.cases.length} cases of the run are listed; ${run.more} more are in its folder.` : "";
  at("set").replaceChildren(...run.sets.map((each, place) => made("option", { value: String(place) }, each.join(" and "))));
  at("set-field").hidden = run.sets.length < 2;
  at("case").addEventListener("change", () => choose(at("case").value === OWN ? OWN : Number(at("case").value)));
  at("set").addEventListener("change", () => { state.set = Number(at("set").value); showSettings(); changed(); });
  at("recommend").addEventListener("click", recommend);
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; showCharts(); ask(); } });
}

begun((found) => {
  run = found;
  ask = latest("/api/what-if", question, (answer) => { clearTimeout(waited); showAnswer(answer); }, blank);
  chart = latest("/api/charts", question, (answer) => { charts = answer; showCharts(); }, () => { charts = null; showCharts(); });
  fill();
  at("explorer").hidden = false;
  state.given = { ...run.usual };
  choose(run.cases.length ? 0 : OWN);
});
