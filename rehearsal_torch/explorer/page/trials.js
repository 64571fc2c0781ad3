// The page of trials: those so far, the recommendation, proposals and their results.

import { key, number } from "/page/chart.js";
import { rewards } from "/page/courses.js";
import { request, at, start, head, create, paragraphs } from "/page/page.js";
import { fields, measured, report } from "/page/report_form.js";

let run = null, trials = null, recommendation = null;
// How often the file is read again for what other pages have written, in milliseconds.
const AGAIN = 5000;
const holdInputs = {};

const settings = (values) => Object.entries(values).map(([name, value]) => `${name} ${number(value)}`).join(", ");

function message(id, text) {
  at(id).textContent = text;
  at(id).hidden = !text;
}

// Disables all buttons while a question is answered.
async function whileBusy(button, id, ask) {
  const label = button.textContent;
  message(id, "");
  for (const control of document.querySelectorAll("#explorer button")) control.disabled = true;
  button.textContent = "Working ...";
  button.setAttribute("aria-busy", "true");
  try {
    return await ask();
  } catch (error) {
    message(id, error.message);
    return null;
  } finally {
    button.textContent = label;
    button.removeAttribute("aria-busy");
    for (const control of document.querySelectorAll("#explorer button")) control.disabled = false;
    // A button that is disabled loses the keyboard.
    if (document.activeElement === document.body) button.focus();
  }
}

// ---- The trials so far

function showTrials() {
  at("summary").textContent = trials.summary;
  const hasRewards = trials.course.numbers.length > 0;
  at("picture").replaceChildren();
  if (hasRewards) {
    const drawing = create("div");
    at("picture").append(drawing, key([["trial", "trial"], ["line", "best so far"],
      ...(recommendation ? [["after", "recommended: expected reward, with interval"]] : [])]));
    rewards(drawing, trials.course, recommendation);
  }
  const names = run.actions.map((action) => action.name);
  const nodes = run.nodes.length ? run.nodes : [...new Set(trials.rows.flatMap((row) => Object.keys(row.nodes)))];
  at("heads").replaceChildren(...["Trial", "State", ...names, ...nodes, "Reward"].map((text, index) => create("th",
    { scope: "col", ...(index > 1 ? { class: "n" } : {}) }, text)));
  at("rows").replaceChildren(...trials.rows.map((row) => create("tr", {}, create("th", { scope: "row" }, String(row.id)),
    create("td", {}, row.reason ? `${row.state}: ${row.reason}` : row.state),
    ...names.map((name) => create("td", { class: "n" }, setting(row, name))),
    ...nodes.map((name) => create("td", { class: "n" }, name in row.nodes ? number(row.nodes[name]) : "")),
    create("td", { class: "n" }, row.reward === null ? "" : number(row.reward)))));
  at("all-note").textContent = trials.more ? `The last ${trials.rows.length} are listed, the latest first; there are ${trials.more} earlier ones.` : "The latest first.";
}

const setting = (row, name) => (row.asked && row.asked[name] !== row.settings[name]
  ? `${number(row.settings[name])} (proposed: ${number(row.asked[name])})` : number(row.settings[name]));

// ---- What is pending

function showPending() {
  const formOf = new Map([...at("pending").children].map((form) => [Number(form.dataset.trial), form]));
  const forms = trials.pending.map((row) => formOf.get(row.id) ?? report(run, row, pendingForm(row)));
  for (const [id, form] of formOf) if (!trials.pending.some((row) => row.id === id)) form.remove();
  forms.forEach((form, index) => { if (at("pending").children[index] !== form) at("pending").insertBefore(form, at("pending").children[index] ?? null); });
  at("pending-note").textContent = trials.pending.length
    ? "Type what was measured. Change a setting where another one was run; the proposed one is kept beside it."
    : "No proposed trial is without a result.";
}

const pendingForm = (row) => ({
  id: `trial-${row.id}`,
  title: `Trial ${row.id}: ${settings(row.settings)}`,
  buttons: [
    ["Record", (form, button) => tell(form, button, "/api/tell", { trial: row.id, ...measured(form, row) }, "recorded")],
    ["It failed", (form, button) => tell(form, button, "/api/fail", { trial: row.id, reason: form.querySelector(".reason").value }, "recorded as failed")],
    ["Withdraw it", (form, button) => tell(form, button, "/api/abandon", { trial: row.id, reason: form.querySelector(".reason").value }, "withdrawn")],
  ],
});

const ownForm = () => ({
  id: "trial-own",
  title: "An experiment of your own",
  buttons: [["Record", (form, button) => tell(form, button, "/api/tell", { trial: null, ...measured(form, null) }, "recorded")]],
});

async function tell(form, button, path, question, outcome) {
  const answer = await whileBusy(button, `${form.id}-message`, () => request(path, question));
  if (!answer) return;
  recommendation = null;
  at("adopted").hidden = true;
  if (form.id === "trial-own") showOwn();
  await load();
  at("told").textContent = [`Trial ${answer.trial} is ${outcome}.`, ...answer.notes.map((text) => `${text}.`)].join(" ");
}

function showOwn() {
  at("own-form").replaceChildren(report(run, null, ownForm()));
}

// ---- Questions

function fixed() {
  const invalid = Object.entries(holdInputs).filter(([, input]) => input.validity.badInput).map(([name]) => name);
  if (invalid.length) throw new Error(`${invalid.join(", ")}: expected a number, or nothing, to hold it at`);
  return Object.fromEntries(Object.entries(holdInputs).filter(([, input]) => input.value.trim() !== "").map(([name, input]) => [name, Number(input.value)]));
}

function askQuestion() {
  const count = at("count").valueAsNumber;
  if (!Number.isInteger(count)) throw new Error("count: expected a whole number of trials");
  return { count, fixed: fixed() };
}

async function ask() {
  const answer = await whileBusy(at("ask"), "ask-message", async () => request("/api/ask", askQuestion()));
  if (!answer) return;
  await load();
  const names = answer.made.map((proposal) => proposal.trial), several = names.length > 1;
  at("asked").textContent = [`Proposed: trial${several ? "s" : ""} ${names.join(", ")}. Type below what came of ${several ? "them" : "it"}.`,
    ...answer.notes.map((text) => `${text}.`)].join(" ");
}

async function recommend() {
  const answer = await whileBusy(at("adopt"), "adopt-message", async () => request("/api/adopt", { fixed: fixed() }));
  if (!answer) { recommendation = null; at("adopted").hidden = true; showTrials(); return; }
  recommendation = answer;
  at("adopted").hidden = false;
  at("adopted-head").textContent = `Keep ${settings(answer.settings)}${answer.tried ? " (tried)" : ""}.`;
  at("adopted-number").hidden = false;
  at("point").textContent = number(answer.predicted);
  at("between").textContent = answer.lower === null ? "expected reward, without an interval"
    : `expected reward; ${100 * answer.level}% interval ${number(answer.lower)} to ${number(answer.upper)}`;
  at("adopted-said").replaceChildren(...paragraphs([`${answer.sentence}.`, ...answer.notes.map((text) => `${text}.`)]));
  showTrials();
}

// Of several answers on their way, that to the last question counts.
let loads = 0;

async function load() {
  const loadNumber = loads += 1;
  try {
    const answer = await request("/api/trials");
    if (loadNumber !== loads) return;
    if (JSON.stringify(answer) === JSON.stringify(trials)) return;
    trials = answer;
  } catch (error) {
    message("trouble", error.message);
    return;
  }
  message("trouble", "");
  showTrials();
  if (run.live) showPending();
}

async function watch() {
  if (!document.querySelector("[aria-busy]")) await load();
  setTimeout(watch, AGAIN);
}

function fill() {
  head(run);
  at("live").hidden = at("adopt-asked").hidden = !run.live;
  at("how-section").hidden = run.live;
  at("how").textContent = run.how.join("\n");
  if (run.live) at("kept").textContent = "What is recorded is written to the file.";
  if (run.recommended) {
    at("adopted").hidden = false;
    at("adopted-head").textContent = run.recommended.headline;
    at("adopted-number").hidden = true;
    at("adopted-said").replaceChildren(...paragraphs(run.recommended.said));
  }
  if (!run.live) return;
  at("held").replaceChildren(...fields(run.actions, "hold", (name, input) => { holdInputs[name] = input; }));
  for (const input of Object.values(holdInputs)) { input.type = "number"; input.step = "any"; }
  showOwn();
  at("ask").addEventListener("click", ask);
  at("adopt").addEventListener("click", recommend);
}

start(async (description) => {
  run = description;
  fill();
  at("explorer").hidden = false;
  await load();
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width && trials) { width = window.innerWidth; showTrials(); } });
  if (run.live) setTimeout(watch, AGAIN);
});
