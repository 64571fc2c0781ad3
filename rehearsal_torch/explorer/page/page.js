// Sends what a form holds to the server, and puts the parts of the page that come back in their places.

const at = (id) => document.getElementById(id);
const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });
const main = document.querySelector("main");
const REREAD = 5000;

// What a form holds, numbers where there are some; what is empty is left out. A value that was rounded for the page
// and left as it was has all its digits.
function held(form) {
  const question = Object.create(null);
  for (const control of form.elements) {
    if (!control.name || control.disabled || control.value === "" || (/radio|checkbox/.test(control.type) && !control.checked)) continue;
    const text = control.dataset.exact !== undefined && control.value === control.defaultValue ? control.dataset.exact : control.value;
    const value = control.dataset.text === undefined && Number.isFinite(Number(text)) ? Number(text) : text;
    if (control.type === "checkbox") (question[control.name] ??= []).push(value);
    else if (control.dataset.part) (question[control.dataset.part] ??= Object.create(null))[control.name] = value;
    else question[control.name] = value;
  }
  return question;
}

// The parts that answer a question. Where another page is being answered, this one waits for its turn.
async function request(name, question) {
  for (;;) {
    const response = await fetch(`/api/${name}`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question),
    }).catch(() => { throw new Error("No answer: the command that serves this page has ended. Start it again, then load this page again."); });
    const text = await response.text();
    if (response.ok) return text;
    if (response.status !== 409) throw new Error(text.startsWith("{") ? JSON.parse(text).message : text);
    await pause(500);
  }
}

// What was typed into a part that is kept stays, as does the place of the keyboard.
function put(html) {
  const parts = document.createElement("template");
  parts.innerHTML = html;
  for (const part of [...parts.content.children]) {
    const before = at(part.id), focused = document.activeElement.id;
    if (before.dataset.kept !== undefined && before.outerHTML === part.outerHTML) continue;
    for (const input of before.dataset.kept === undefined ? [] : before.querySelectorAll("input, select")) {
      const after = parts.content.getElementById(input.id);
      if (after && input.value !== input.defaultValue) after.value = input.value;
    }
    before.replaceWith(part);
    at(focused)?.focus({ preventScroll: true });
  }
}

function say(form, text) {
  const place = form.querySelector("[role=alert]") ?? at("message");
  place.textContent = text;
  place.hidden = !text;
}

// One chain of questions at a time; of those that come meanwhile, the last one. An answer to an old one is dropped.
let latest = null, isAsking = false;

async function ask(form, names, button = null) {
  latest = { form, names, button };
  main.setAttribute("aria-busy", "true");
  if (isAsking) return;
  isAsking = true;
  for (let chain = null; chain !== latest;) {
    chain = latest;
    await answered(chain);
  }
  isAsking = false;
  main.removeAttribute("aria-busy");
}

async function answered(chain) {
  const parts = document.querySelectorAll("[data-answer]"), working = at("working");
  const timer = setTimeout(() => { working.hidden = false; wait(parts); }, 250);
  for (const button of chain.button ? document.querySelectorAll("button") : []) button.disabled = true;
  try {
    for (const name of chain.names) {
      const html = await request(name, held(chain.form));
      if (chain !== latest && !chain.button) break;
      say(chain.form, "");
      put(html);
    }
    for (const part of document.querySelectorAll(".waiting")) part.classList.remove("waiting");
    if (chain.button?.dataset.reset !== undefined) chain.form.reset();
  } catch (error) {
    if (chain === latest) say(chain.form, error.message);
    if (chain === latest && !chain.button) wait(parts);
  }
  clearTimeout(timer);
  for (const button of document.querySelectorAll("button:disabled")) button.disabled = false;
  if (chain.button && document.activeElement === document.body) chain.button.focus({ preventScroll: true });
  working.hidden = true;
}

// A number that answers an earlier question is not left standing; parts that were replaced meanwhile are not on the page.
function wait(parts) {
  for (const part of parts) part.classList.add("waiting");
}

const names = (control) => control.closest("[data-ask]")?.dataset.ask.split(" ");
let timer;

document.addEventListener("input", ({ target }) => {
  const pair = at(target.dataset.pair);
  if (pair) {
    const digits = target.type === "range" ? Number(Number(target.value).toPrecision(4)) : Number(target.value);
    pair.value = target.value === "" ? "" : Math.min(Number(target.max), Math.max(Number(target.min), digits));
  }
  if (target.dataset.find) { find(target); return; }
  if (!names(target)) return;
  clearTimeout(timer);
  main.setAttribute("aria-busy", "true");
  timer = setTimeout(() => ask(target.form, names(target)), 150);
});

document.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("click", ({ target }) => {
  if (target.tagName !== "BUTTON") return;
  if (target.dataset.put) put(at(target.dataset.put).innerHTML);
  if (target.dataset.ask) ask(target.form ?? at(target.dataset.form), names(target), target);
});

// Lists the options with a text; the first of them is chosen where the chosen one is not among them.
const options = new Map();

function find(search) {
  const select = at(search.dataset.find), before = select.value;
  if (!options.has(select)) options.set(select, [...select.options]);
  const sought = search.value.toLowerCase().trim();
  const shown = options.get(select).filter((option) => `${option.text} ${option.dataset.words ?? ""}`.toLowerCase().includes(sought));
  at("found").textContent = sought ? `${shown.length} of ${options.get(select).length}` : "";
  if (!shown.length) return;
  select.replaceChildren(...shown);
  if (select.value !== before) select.dispatchEvent(new Event("input", { bubbles: true }));
}

for (const form of document.querySelectorAll("form[data-first]")) ask(form, names(form));

if (main.dataset.reread) {
  setInterval(() => { if (!isAsking) ask(at("reread"), [main.dataset.reread]); }, REREAD);
}
