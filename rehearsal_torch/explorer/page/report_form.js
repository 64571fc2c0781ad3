// A form in which the result of an experiment is typed.

import { number } from "/page/chart.js";
import { made } from "/page/page.js";

const range = (one) => (one.levels ? `one of ${one.levels.map(number).join(", ")}` : one.bounds ? `from ${number(one.bounds[0])} to ${number(one.bounds[1])}` : "");

// A labelled field for each name; `known` gets each with its name.
export function fields(every, id, known) {
  return every.map((one, place) => {
    const own = `${id}-${place}`, hint = range(one);
    const input = made("input", { type: "text", inputmode: "decimal", autocomplete: "off", id: own, ...(hint ? { "aria-describedby": `${own}-hint` } : {}) });
    known(one.name, input);
    return made("div", { class: "field" }, made("label", { for: own }, one.name), input,
      ...(hint ? [made("span", { class: "hint", id: `${own}-hint` }, hint)] : []));
  });
}

// The form of a trial, or of an experiment that was not proposed.
export function report(run, row, { id, title, buttons }) {
  const form = made("div", { class: "case report", id, role: "group", "aria-label": title }, made("h3", {}, title));
  if (row) form.dataset.trial = String(row.id);
  const settings = fields(run.actions, `${id}-set`, (name, input) => {
    input.dataset.setting = name;
    if (!row) return;
    input.value = number(row.settings[name]);
    input.dataset.proposed = input.value;
  });
  const nodes = fields(run.nodes.map((name) => ({ name })), `${id}-node`, (name, input) => { input.dataset.node = name; });
  form.append(made("div", { class: "asked" },
    made("div", {}, made("p", { class: "soft" }, "Settings that were run"), ...settings),
    made("div", {}, made("p", { class: "soft" }, "Measured"), ...nodes)));
  if (row) {
    form.append(made("div", { class: "field" }, made("label", { for: `${id}-reason` }, "Why, if it failed or is withdrawn"),
      made("input", { type: "text", class: "reason", id: `${id}-reason`, maxlength: "1000" })));
  }
  const line = made("p", { class: "buttons" });
  buttons.forEach(([text, act], place) => {
    const button = made("button", { type: "button", class: place ? "plain" : "" }, text);
    button.addEventListener("click", () => act(form, button));
    line.append(button);
  });
  form.append(line, made("p", { class: "notice", role: "alert", id: `${id}-message`, hidden: true }));
  return form;
}

// A number where one was typed, else the text itself: the optimiser says what is wrong with it.
function typed(text) {
  const value = Number(text);
  return text.trim() !== "" && Number.isFinite(value) ? value : text;
}

// What the form says. Settings that were left as they are shown are the proposed ones, with all their digits.
export function measured(form, row) {
  const settings = {}, nodes = {};
  let differs = !row;
  for (const input of form.querySelectorAll("[data-setting]")) {
    const same = row && input.value === input.dataset.proposed;
    if (!same && input.value.trim() === "") { differs = true; continue; }
    settings[input.dataset.setting] = same ? row.settings[input.dataset.setting] : typed(input.value);
    differs ||= !same;
  }
  for (const input of form.querySelectorAll("[data-node]")) {
    if (input.value.trim() !== "") nodes[input.dataset.node] = typed(input.value);
  }
  return { settings: differs ? settings : {}, nodes };
}
