// What all pages share: elements, questions to the server, and the head of the page.

export const at = (id) => document.getElementById(id);

export function made(name, attributes = {}, ...children) {
  const found = document.createElement(name);
  for (const [key_, value] of Object.entries(attributes)) {
    if (key_ === "class") found.className = value;
    else if (key_ === "hidden") found.hidden = value;
    else found.setAttribute(key_, value);
  }
  found.append(...children);
  return found;
}

export const paragraphs = (texts) => texts.map((text) => made("p", {}, text));
export const bullets = (texts) => texts.map((text) => made("li", {}, text));

const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

// What is done whenever a question is turned away because another one is still being answered.
export const busy = { again: () => {} };

// An answer of the server. Where another page is being answered, this one waits for its turn.
export async function asked(path, question) {
  for (;;) {
    const [status, content] = await sent(path, question);
    if (status < 400) return content;
    if (status !== 409) throw new Error(content.message);
    busy.again();
    await pause(500);
  }
}

async function sent(path, question) {
  let response;
  try {
    response = question === undefined ? await fetch(path) : await fetch(path, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question),
    });
  } catch {
    throw new Error("no answer: the command that serves this page has ended. Start it again, then load this page again.");
  }
  const content = await response.json().catch(() => ({ message: `the server answered with status ${response.status}` }));
  return [response.status, content];
}

// One question at a time; of those that come meanwhile, the last one is asked. An answer to a question that is
// no longer the one that is set is dropped. Where to ask may depend on the question.
export function latest(path, question, show, fail) {
  let busy = false, again = false;
  return async function ask() {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      const now = question();
      if (now === null) break;
      const current = () => !again && JSON.stringify(question()) === JSON.stringify(now);
      try {
        const found = await asked(typeof path === "function" ? path(now) : path, now);
        if (current()) show(found);
      } catch (error) {
        if (current()) fail(error.message);
      }
    } while (again);
    busy = false;
  };
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// What the session says of itself: title, question, use, and what the answers rest on.
export function head(run) {
  document.title = `${run.title}: rehearsal explore`;
  at("title").textContent = run.title;
  at("question").replaceChildren(...paragraphs([run.fitted, ...run.question].filter(Boolean)));
  at("use").replaceChildren(...paragraphs([run.use]));
  at("cautions").replaceChildren(...bullets(run.cautions));
  at("assumptions").replaceChildren(...bullets([...run.assumptions, ...run.limits]));
}

// Begins a page with what the session describes, or says why it cannot.
export async function begun(show) {
  let run;
  try {
    run = await asked("/api/run");
  } catch (error) {
    at("trouble").textContent = error.message;
    at("trouble").hidden = false;
    return;
  }
  show(run);
}
