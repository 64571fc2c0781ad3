// What all pages share: elements, questions to the server, and the head of the page.

export const at = (id) => document.getElementById(id);

export function create(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key === "hidden") node.hidden = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

export const paragraphs = (texts) => texts.map((text) => create("p", {}, text));
export const bullets = (texts) => texts.map((text) => create("li", {}, text));

const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

// Called whenever a question is turned away because another one is still being answered.
export const busy = { again: () => {} };

// An answer of the server. Where another page is being answered, this one waits for its turn.
export async function request(path, question) {
  for (;;) {
    const [status, content] = await send(path, question);
    if (status < 400) return content;
    if (status !== 409) throw new Error(content.message);
    busy.again();
    await pause(500);
  }
}

async function send(path, question) {
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

// Asks one question at a time; of those that come meanwhile, the last one. An answer to an old question is
// dropped. The path may depend on the question.
export function latest(path, question, show, fail) {
  let isAsking = false, isStale = false;
  return async function ask() {
    if (isAsking) { isStale = true; return; }
    isAsking = true;
    do {
      isStale = false;
      const query = question();
      if (query === null) break;
      const isCurrent = () => !isStale && JSON.stringify(question()) === JSON.stringify(query);
      try {
        const answer = await request(typeof path === "function" ? path(query) : path, query);
        if (isCurrent()) show(answer);
      } catch (error) {
        if (isCurrent()) fail(error.message);
      }
    } while (isStale);
    isAsking = false;
  };
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The head of the page: title, question, use, and what the answers rest on.
export function head(run) {
  document.title = `${run.title}: rehearsal explore`;
  at("title").textContent = run.title;
  at("question").replaceChildren(...paragraphs([run.fitted, ...run.question].filter(Boolean)));
  at("use").replaceChildren(...paragraphs([run.use]));
  at("cautions").replaceChildren(...bullets(run.cautions));
  at("assumptions").replaceChildren(...bullets([...run.assumptions, ...run.limits]));
}

// Starts a page with the description of its session, or shows why it cannot.
export async function start(show) {
  let run;
  try {
    run = await request("/api/run");
  } catch (error) {
    at("trouble").textContent = error.message;
    at("trouble").hidden = false;
    return;
  }
  show(run);
}
