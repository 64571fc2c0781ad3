// The form for the result of an experiment.

import { number } from "/page/chart.js";
import { create } from "/page/page.js";

const range = (variable) => (variable.levels ? `one of ${variable.levels.map(number).join(", ")}` : variable.bounds ? `from ${number(variable.bounds[0])} to ${number(variable.bounds[1])}` : "");

// A labelled field for each variable; `register` is called with the name and the input of each.
export function fields(variables, id, register) {
  return variables.map((variable, index) => {
    const fieldId = `${id}-${index}`, hint = range(variable);
    const input = create("input", { type: "text", inputmode: "decimal", autocomplete: "off", id: fieldId, ...(hint ? { "aria-describedby": `${fieldId}-hint` } : {}) });
    register(variable.name, input);
    return create("div", { class: "field" }, create("label", { for: fieldId }, variable.name), input,
      ...(hint ? [create("span", { class: "hint", id: `${fieldId}-hint` }, hint)] : []));
  });
}

// The form of a trial, or of an experiment that was not proposed.
export function report(run, row, { id, title, buttons }) {
  const form = create("div", { class: "case report", id, role: "group", "aria-label": title }, create("h3", {}, title));
  if (row) form.dataset.trial = String(row.id);
  const settings = fields(run.actions, `${id}-set`, (name, input) => {
    input.dataset.setting = name;
    if (!row) return;
    input.value = number(row.settings[name]);
    input.dataset.proposed = input.value;
  });
  const nodes = fields(run.nodes.map((name) => ({ name })), `${id}-node`, (name, input) => { input.dataset.node = name; });
  form.append(create("div", { class: "asked" },
    create("div", {}, create("p", { class: "soft" }, "Settings that were run"), ...settings),
    create("div", {}, create("p", { class: "soft" }, "Measured"), ...nodes)));
  if (row) {
    form.append(create("div", { class: "field" }, create("label", { for: `${id}-reason` }, "Why, if it failed or is withdrawn"),
      create("input", { type: "text", class: "reason", id: `${id}-reason`, maxlength: "1000" })));
  }
  const line = create("p", { class: "buttons" });
  buttons.forEach(([text, act], index) => {
    const button = create("button", { type: "button", class: index ? "plain" : "" }, text);
    button.addEventListener("click", () => act(form, button));
    line.append(button);
  });
  form.append(line, create("p", { class: "notice", role: "alert", id: `${id}-message`, hidden: true }));
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
