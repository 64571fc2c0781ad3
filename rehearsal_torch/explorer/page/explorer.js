// The page: what is asked, and what comes back. Nothing is computed here; every number is the server's.

import { curve, interval, key, number, outcomes } from "/page/chart.js";
import { request, at, start, bullets, capital, head, latest, create, paragraphs } from "/page/page.js";

const OWN = "own";
let run = null;
// What the controls hold: the case, its context, the set of variables, and a value for every action.
const state = { case: OWN, given: {}, set: 0, values: {} };
let charts = null;

// ---- The case

const names = () => run.sets[state.set];

function bounds(name) {
  const caseBounds = state.case === OWN ? undefined : run.cases[state.case].bounds[name];
  return caseBounds ?? run.actions[name].bounds;
}

function allowedLevels(name) {
  const [low, high] = bounds(name);
  return (run.actions[name].levels ?? []).filter((level) => level >= low && level <= high);
}

function nearestAllowed(name, value) {
  const [low, high] = bounds(name), levels = allowedLevels(name);
  if (levels.length) return levels.reduce((closest, level) => (Math.abs(level - value) < Math.abs(closest - value) ? level : closest));
  return Math.min(high, Math.max(low, value));
}

function selectCase(index) {
  state.case = index;
  const record = index === OWN ? null : run.cases[index];
  if (record) state.given = { ...record.given };
  const setIndex = record?.set ? run.sets.findIndex((variables) => variables.length === Object.keys(record.set).length
    && variables.every((name) => name in record.set)) : -1;
  if (setIndex >= 0) {
    state.set = setIndex;
    Object.assign(state.values, record.set);
  }
  for (const name of Object.keys(run.actions)) {
    const [low, high] = bounds(name);
    state.values[name] = nearestAllowed(name, Number.isFinite(state.values[name]) ? state.values[name] : (low + high) / 2);
  }
  at("case").value = String(index);
  at("set").value = String(state.set);
  showContext();
  showSettings();
  update();
}

// A variable of texts is chosen by its texts; what is sent are the numbers of its columns.
function levelSelect(variable, id) {
  const list = create("select", { id, "data-name": variable.name, "aria-describedby": `${id}-hint` },
    ...variable.levels.map((level, index) => create("option", { value: String(index) }, level.text)));
  const current = variable.levels.findIndex((level) => Object.entries(level.values).every(([name, value]) => state.given[name] === value));
  list.value = String(Math.max(current, 0));
  Object.assign(state.given, variable.levels[Math.max(current, 0)].values);
  return list;
}

function showContext() {
  const hint = (variable) => (variable.range ? `observations: ${number(variable.range[0])} to ${number(variable.range[1])}` : "");
  at("context").replaceChildren(...run.context.map((variable, index) => {
    const id = `given-${index}`;
    const input = variable.levels ? levelSelect(variable, id)
      : create("input", { type: "number", step: "any", id, "data-name": variable.name, "aria-describedby": `${id}-hint` });
    if (!variable.levels) input.value = variable.name in state.given ? String(state.given[variable.name]) : "";
    input.addEventListener("input", () => {
      if (variable.levels) Object.assign(state.given, variable.levels[Number(input.value)].values);
      else state.given[variable.name] = input.valueAsNumber;
      if (state.case !== OWN) {
        // A case that is changed is another case: its own bounds do not apply to it.
        state.case = OWN;
        at("case").value = OWN;
        for (const name of Object.keys(run.actions)) state.values[name] = nearestAllowed(name, state.values[name]);
        showSettings();
      }
      update();
    });
    return create("div", { class: "field" }, create("label", { for: id }, variable.name), input,
      create("span", { class: "hint", id: `${id}-hint` }, hint(variable)));
  }));
  if (!run.context.length) at("context").replaceChildren(create("p", {}, "Nothing is known of a case before deciding."));
}

// ---- The action

// The present value of an action, where the case states one.
const present = (name) => (state.case === OWN ? undefined : run.cases[state.case].present[name]);

// A value of an action: the text of a level, where it has texts.
const valueText = (name, value) => run.actions[name].texts?.[value] ?? number(value);

function presentText(name) {
  return present(name) === undefined ? "" : `; now ${valueText(name, present(name))}`;
}

function showSettings() {
  at("settings").replaceChildren(...names().map((name, index) => {
    const id = `set-${index}`, levels = allowedLevels(name), [low, high] = bounds(name);
    const slider = create("input", { type: "range", id, "data-name": name, "aria-describedby": `${id}-hint` });
    let output;
    const hint = (levels.length ? `one of ${levels.length} values` : `from ${number(low)} to ${number(high)}`) + presentText(name);
    if (levels.length) {
      [slider.min, slider.max, slider.step] = [0, levels.length - 1, 1];
      output = create("output", { for: id });
      const showText = () => { output.textContent = valueText(name, state.values[name]); slider.setAttribute("aria-valuetext", output.textContent); };
      slider.value = levels.indexOf(state.values[name]);
      slider.addEventListener("input", () => { state.values[name] = levels[slider.valueAsNumber]; showText(); update(); });
      showText();
    } else {
      [slider.min, slider.max, slider.step] = [low, high, "any"];
      output = create("input", { type: "number", step: "any", "aria-label": `${name}, as a number`, "data-name": name });
      slider.value = state.values[name];
      output.value = eightDigits(state.values[name]);
      slider.addEventListener("input", () => {
        const step = (high - low) / 400;
        const [lowest, largest] = [low, high];
        // Values of few digits; the ends of the range are kept as they are.
        const rounded = step > 0 ? Number((Math.round(slider.valueAsNumber / powerOfTen(step)) * powerOfTen(step)).toPrecision(12)) : low;
        state.values[name] = Math.min(largest, Math.max(lowest, rounded));
        output.value = eightDigits(state.values[name]);
        update();
      });
      output.addEventListener("input", () => {
        state.values[name] = output.valueAsNumber;
        if (Number.isFinite(state.values[name])) slider.value = state.values[name];
        update();
      });
    }
    return create("div", { class: "field" }, create("label", { for: id }, name), create("div", { class: "pair" }, slider, output),
      create("span", { class: "hint", id: `${id}-hint` }, hint));
  }));
  const bounded = state.case === OWN ? [] : names().filter((name) => name in run.cases[state.case].bounds);
  at("bounds-note").textContent = bounded.length ? `The bounds of ${bounded.join(" and ")} are those of this case.` : "The bounds are those of the task.";
}

const powerOfTen = (size) => 10 ** Math.floor(Math.log10(size));
const eightDigits = (value) => String(Number(value.toPrecision(8)));

// What is wrong with the numbers that were typed; marks the fields.
function faults() {
  const messages = [];
  for (const input of document.querySelectorAll("#context input")) {
    const isWrong = !Number.isFinite(input.valueAsNumber);
    input.setAttribute("aria-invalid", String(isWrong));
    if (isWrong) messages.push(`${input.dataset.name}: expected a number.`);
  }
  for (const input of document.querySelectorAll("#settings input[type=number]")) {
    const value = input.valueAsNumber, name = input.dataset.name, [low, high] = bounds(name);
    const isWrong = !(value >= low && value <= high);
    input.setAttribute("aria-invalid", String(isWrong));
    if (isWrong) messages.push(`${name}: expected a number from ${number(low)} to ${number(high)}.`);
  }
  return messages;
}

// ---- The answer

function question() {
  if (faults().length) return null;
  const set = Object.fromEntries(names().map((name) => [name, state.values[name]]));
  const given = Object.fromEntries(run.context.flatMap((variable) => (variable.levels ? Object.keys(variable.levels[0].values) : [variable.name]))
    .map((name) => [name, state.given[name]]));
  return { case: state.case === OWN ? null : state.case, given, set };
}

function showMessage(text) {
  at("answer").hidden = true;
  at("message").textContent = text;
  at("message").hidden = !text;
  charts = null;
  showCharts();
}

function showAnswer(result) {
  at("message").hidden = true;
  at("answer").hidden = false;
  at("answer").classList.remove("waiting");
  const estimate = result.estimate;
  at("answer").classList.toggle("refused", Boolean(result.withheld));
  at("point").textContent = result.told ? result.told.point : "";
  at("between").textContent = result.told ? result.told.interval : "";
  at("point").parentElement.hidden = !estimate;
  if (estimate) {
    interval(at("interval"), estimate, result.baseline, result.unchanged, result.told);
    at("interval").append(key([["bar", "interval"], ...(result.baseline ? [["none", `no action, ${result.told.baseline}`]] : []),
      ...(result.unchanged ? [["now", `present values kept, ${result.told.unchanged}`]] : [])]));
  } else {
    at("interval").replaceChildren();
  }
  at("sentence").textContent = capital(result.sentence);
  at("against").textContent = [result.against, result.also && capital(result.also)].filter(Boolean).map((text) => `${text}.`).join(" ");
  at("warnings").replaceChildren(...bullets(result.warnings));
  at("near").textContent = [result.beyond, result.near === null ? ""
    : `The 5th nearest observation is ${result.near} standard deviations away.`].filter(Boolean).join(" ");
}

function showCharts() {
  at("curves").classList.remove("waiting");
  at("outcomes").classList.remove("waiting");
  const panels = charts ? charts.curves.map((series) => {
    const panel = create("div", { class: "panel" }), drawing = create("div");
    const presentValue = charts.present[series.name];
    panel.append(drawing, key([["line", "claim"], ["band", "interval"], ["none", "no action"], ["here", "as set above"],
      ...(presentValue === undefined ? [] : [["now", `present value, ${valueText(series.name, presentValue)}`]]), ["gone", "outside the data"]]
      .filter(([kind]) => kind !== "none" || charts.baseline)));
    return [panel, () => curve(drawing, series, charts.baseline, state.values[series.name], presentValue)];
  }) : [];
  at("curves").replaceChildren(...panels.map(([panel]) => panel));
  panels.forEach(([, draw]) => draw());
  const density = charts?.outcomes;
  at("outcomes-section").hidden = Boolean(charts) && !density && !charts.withheld;
  at("outcomes-note").textContent = density ? `Of the outcomes that the fitted model expects, ${share(density.share)} lie in the desired region after this setting`
    + (density.share_before === null ? "." : `, ${share(density.share_before)} with no action.`) : charts ? "No outcomes are drawn outside the data." : "";
  const drawings = density ? density.coordinates.map((coordinate) => {
    const panel = create("div", { class: "panel" }), drawing = create("div");
    panel.append(drawing, key([["after", "after this setting"], ["none", "no action"], ["region", "desired region"]]
      .filter(([kind]) => (kind !== "none" || coordinate.before) && (kind !== "region" || coordinate.lower !== null || coordinate.upper !== null))));
    return [panel, () => outcomes(drawing, coordinate)];
  }) : [];
  at("outcomes").replaceChildren(...drawings.map(([panel]) => panel));
  drawings.forEach(([, draw]) => draw());
}

const share = (value) => `${(100 * value).toFixed(1)}%`;

let ask, chart, chartTimer, waitTimer;

function update() {
  at("recommended").hidden = true;
  const messages = faults();
  clearTimeout(waitTimer);
  clearTimeout(chartTimer);
  if (messages.length) {
    showMessage(messages.join(" "));
    return;
  }
  waitTimer = setTimeout(showWaiting, 250);
  ask();
  at("curves").classList.add("waiting");
  at("outcomes").classList.add("waiting");
  chartTimer = setTimeout(chart, 200);
}

// A number that answers an earlier question is not left standing.
function showWaiting() {
  at("answer").classList.add("waiting");
  at("point").parentElement.hidden = true;
  at("interval").replaceChildren();
  at("sentence").textContent = "Asking ...";
  at("against").textContent = at("near").textContent = "";
  at("warnings").replaceChildren();
}

async function recommend() {
  const query = question();
  if (query === null) return;
  at("recommend").disabled = true;
  try {
    const decision = await request("/api/recommend", { case: query.case, given: query.given });
    at("recommended").hidden = false;
    at("recommended").className = `case ${decision.undecided ? "refused" : decision.status === "leave" ? "none" : ""}`;
    at("recommended-head").textContent = decision.headline;
    at("recommended-said").replaceChildren(...paragraphs(decision.said));
    at("recommended-warnings").replaceChildren(...bullets(decision.warnings));
    at("take").hidden = !decision.setting;
    at("take").onclick = () => {
      state.set = run.sets.findIndex((variables) => variables.length === Object.keys(decision.setting).length && variables.every((name) => name in decision.setting));
      Object.assign(state.values, decision.setting);
      at("set").value = String(state.set);
      showSettings();
      update();
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
  const ownCase = create("option", { value: OWN }, "a case of your own");
  at("case").replaceChildren(...run.cases.map((record, index) => create("option", { value: String(index) }, record.name)), ownCase);
  at("case-note").textContent = run.more ? `The first ${run.cases.length} cases of the run are listed; ${run.more} more are in its folder.` : "";
  at("set").replaceChildren(...run.sets.map((variables, index) => create("option", { value: String(index) }, variables.join(" and "))));
  at("set-field").hidden = run.sets.length < 2;
  at("case").addEventListener("change", () => selectCase(at("case").value === OWN ? OWN : Number(at("case").value)));
  at("set").addEventListener("change", () => { state.set = Number(at("set").value); showSettings(); update(); });
  at("recommend").addEventListener("click", recommend);
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; showCharts(); ask(); } });
}

start((description) => {
  run = description;
  ask = latest("/api/what-if", question, (answer) => { clearTimeout(waitTimer); showAnswer(answer); }, showMessage);
  chart = latest("/api/charts", question, (answer) => { charts = answer; showCharts(); }, () => { charts = null; showCharts(); });
  fill();
  at("explorer").hidden = false;
  state.given = { ...run.usual };
  selectCase(run.cases.length ? 0 : OWN);
});
