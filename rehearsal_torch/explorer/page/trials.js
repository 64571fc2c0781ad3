// The page of trials: those so far, what to adopt, what to try next, and what came of it.

import { key, number } from "/page/chart.js";
import { rewards } from "/page/courses.js";
import { asked, at, begun, head, made, paragraphs } from "/page/page.js";
import { fields, measured, report } from "/page/report_form.js";

let run = null, trials = null, adopted = null;
// How often the file is read again for what other pages have written, in milliseconds.
const AGAIN = 5000;
const held = {};

const settings = (values) => Object.entries(values).map(([name, value]) => `${name} ${number(value)}`).join(", ");

function message(id, text) {
  at(id).textContent = text;
  at(id).hidden = !text;
}

// Only one question is on its way; its button says so.
async function during(button, id, ask) {
  const before = button.textContent;
  message(id, "");
  for (const each of document.querySelectorAll("#explorer button")) each.disabled = true;
  button.textContent = "Working ...";
  button.setAttribute("aria-busy", "true");
  try {
    return await ask();
  } catch (error) {
    message(id, error.message);
    return null;
  } finally {
    button.textContent = before;
    button.removeAttribute("aria-busy");
    for (const each of document.querySelectorAll("#explorer button")) each.disabled = false;
    // A button that is disabled loses the keyboard.
    if (document.activeElement === document.body) button.focus();
  }
}

// ---- The trials so far

function showTrials() {
  at("summary").textContent = trials.summary;
  const some = trials.course.numbers.length > 0;
  at("picture").replaceChildren();
  if (some) {
    const drawing = made("div");
    at("picture").append(drawing, key([["trial", "trial"], ["line", "best so far"],
      ...(adopted ? [["after", "recommended: expected reward, with interval"]] : [])]));
    rewards(drawing, trials.course, adopted);
  }
  const names = run.actions.map((one) => one.name);
  const nodes = run.nodes.length ? run.nodes : [...new Set(trials.rows.flatMap((row) => Object.keys(row.nodes)))];
  at("heads").replaceChildren(...["Trial", "State", ...names, ...nodes, "Reward"].map((text, place) => made("th",
    { scope: "col", ...(place > 1 ? { class: "n" } : {}) }, text)));
  at("rows").replaceChildren(...trials.rows.map((row) => made("tr", {}, made("th", { scope: "row" }, String(row.id)),
    made("td", {}, row.reason ? `${row.state}: ${row.reason}` : row.state),
    ...names.map((name) => made("td", { class: "n" }, setting(row, name))),
    ...nodes.map((name) => made("td", { class: "n" }, name in row.nodes ? number(row.nodes[name]) : "")),
    made("td", { class: "n" }, row.reward === null ? "" : number(row.reward)))));
  at("all-note").textContent = trials.more ? `The last ${trials.rows.length} are listed, the latest first; there are ${trials.more} earlier ones.` : "The latest first.";
}

const setting = (row, name) => (row.asked && row.asked[name] !== row.settings[name]
  ? `${number(row.settings[name])} (proposed: ${number(row.asked[name])})` : number(row.settings[name]));

// ---- What is pending

function showPending() {
  const known = new Map([...at("pending").children].map((form) => [Number(form.dataset.trial), form]));
  const forms = trials.pending.map((row) => known.get(row.id) ?? report(run, row, pendingForm(row)));
  for (const [id, form] of known) if (!trials.pending.some((row) => row.id === id)) form.remove();
  forms.forEach((form, place) => { if (at("pending").children[place] !== form) at("pending").insertBefore(form, at("pending").children[place] ?? null); });
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

async function tell(form, button, path, question, done) {
  const found = await during(button, `${form.id}-message`, () => asked(path, question));
  if (!found) return;
  adopted = null;
  at("adopted").hidden = true;
  if (form.id === "trial-own") showOwn();
  await load();
  at("told").textContent = [`Trial ${found.trial} is ${done}.`, ...found.notes.map((text) => `${text}.`)].join(" ");
}

function showOwn() {
  at("own-form").replaceChildren(report(run, null, ownForm()));
}

// ---- Questions

function fixed() {
  const wrong = Object.entries(held).filter(([, input]) => input.validity.badInput).map(([name]) => name);
  if (wrong.length) throw new Error(`${wrong.join(", ")}: expected a number, or nothing, to hold it at`);
  return Object.fromEntries(Object.entries(held).filter(([, input]) => input.value.trim() !== "").map(([name, input]) => [name, Number(input.value)]));
}

function wanted() {
  const count = at("count").valueAsNumber;
  if (!Number.isInteger(count)) throw new Error("count: expected a whole number of trials");
  return { count, fixed: fixed() };
}

async function ask() {
  const found = await during(at("ask"), "ask-message", async () => asked("/api/ask", wanted()));
  if (!found) return;
  await load();
  const names = found.made.map((one) => one.trial), several = names.length > 1;
  at("asked").textContent = [`Proposed: trial${several ? "s" : ""} ${names.join(", ")}. Type below what came of ${several ? "them" : "it"}.`,
    ...found.notes.map((text) => `${text}.`)].join(" ");
}

async function recommend() {
  const found = await during(at("adopt"), "adopt-message", async () => asked("/api/adopt", { fixed: fixed() }));
  if (!found) { adopted = null; at("adopted").hidden = true; showTrials(); return; }
  adopted = found;
  at("adopted").hidden = false;
  at("adopted-head").textContent = `Keep ${settings(found.settings)}${found.tried ? " (tried)" : ""}.`;
  at("adopted-number").hidden = false;
  at("point").textContent = number(found.predicted);
  at("between").textContent = found.lower === null ? "expected reward, without an interval"
    : `expected reward; ${100 * found.level}% interval ${number(found.lower)} to ${number(found.upper)}`;
  at("adopted-said").replaceChildren(...paragraphs([`${found.sentence}.`, ...found.notes.map((text) => `${text}.`)]));
  showTrials();
}

// Of several answers on their way, that to the last question counts.
let loads = 0;

async function load() {
  const own = loads += 1;
  try {
    const found = await asked("/api/trials");
    if (own !== loads) return;
    if (JSON.stringify(found) === JSON.stringify(trials)) return;
    trials = found;
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
  at("held").replaceChildren(...fields(run.actions, "hold", (name, input) => { held[name] = input; }));
  for (const input of Object.values(held)) { input.type = "number"; input.step = "any"; }
  showOwn();
  at("ask").addEventListener("click", ask);
  at("adopt").addEventListener("click", recommend);
}

begun(async (found) => {
  run = found;
  fill();
  at("explorer").hidden = false;
  await load();
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width && trials) { width = window.innerWidth; showTrials(); } });
  if (run.live) setTimeout(watch, AGAIN);
});
