// Drawings: the interval of a claim, curves over actions, and outcomes beside the desired region.
// Every drawing is made for the width at hand, so that its letters keep their size.

const NAME = "http://www.w3.org/2000/svg";

export function number(value) {
  if (value === null || value === undefined) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
  return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
}

export function element(name, attributes, text) {
  const made = document.createElementNS(NAME, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function canvas(place, height, label) {
  const width = Math.max(260, place.clientWidth);
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  place.replaceChildren(svg);
  return { svg, width, add: (name, attributes, text) => svg.append(element(name, attributes, text)) };
}

export const spread = (from, to, low, high) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);

// Left, centre or right, so that a text stays within the drawing.
export function anchor(x, width, half) {
  if (x < half) return "start";
  return x > width - half ? "end" : "middle";
}

// The claim with its interval; no action is a dashed line, leaving the present values a diamond.
export function interval(place, estimate, baseline, unchanged, told) {
  const left = unchanged ? `; present values kept: ${told.unchanged}` : "";
  const label = `claim ${told.point}, ${told.interval}${left}`;
  const { width, add } = canvas(place, 64, label);
  const x = spread(0, 1, 10, width - 10);
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    add("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 6, y2: 38 });
    add("text", { x: x(tick), y: 56, "text-anchor": anchor(x(tick), width, 20) }, String(tick));
  }
  add("line", { class: "bar", x1: x(estimate.lower), x2: x(estimate.upper), y1: 22, y2: 22 });
  if (baseline) add("line", { class: "none", x1: x(baseline.point), x2: x(baseline.point), y1: 4, y2: 40 });
  add("circle", { class: "dot", cx: x(estimate.point), cy: 22, r: 7 });
  if (unchanged) add("polygon", { class: "now", points: diamond(x(unchanged.point), 22, 10) });
}

const diamond = (x, y, size) => `${x},${y - size} ${x + size},${y} ${x},${y + size} ${x - size},${y}`;

// The stretches of a curve that have numbers, as lists of places.
function stretches(values) {
  const found = [];
  values.forEach((value, place) => {
    if (value === null) return;
    if (place && values[place - 1] !== null) found[found.length - 1].push(place);
    else found.push([place]);
  });
  return found;
}

export function curve(place, one, baseline, here, present) {
  const { width, add } = canvas(place, 300, `probability over ${one.name}; the numbers are those of the answer above`);
  const left = 44, right = width - 12, top = 12, bottom = 212, floor = 256;
  // Levels and classes have room for a bar on either side of their places.
  const gaps = one.at.slice(1).map((value, index) => value - one.at[index]);
  const room = one.levels ? (gaps.length ? Math.min(...gaps) : 1) / 2 : 0;
  const low = Math.min(one.at[0] - room, ...(one.bins?.low ?? [])), high = Math.max(one.at.at(-1) + room, ...(one.bins?.high ?? []));
  const x = spread(low, high, left, right), y = spread(0, 1, bottom, top);
  const between = (index) => (index === 0 ? left : index === one.at.length ? right : x((one.at[index - 1] + one.at[index]) / 2));
  one.point.forEach((value, index) => {
    if (value !== null) return;
    const from = between(index), to = between(index + 1);
    add("rect", { class: "gone", x: from, y: top, width: Math.max(0, to - from), height: bottom - top });
  });
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    add("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) });
    add("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, String(tick));
  }
  if (one.point.every((value) => value === null)) {
    add("text", { class: "strong", x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" },
      "outside the data");
  }
  const line = (places, part) => places.map((index) => `${x(one.at[index])},${y(one[part][index])}`);
  for (const places of stretches(one.point)) {
    if (one.levels || places.length === 1) {
      for (const index of places) {
        const at = x(one.at[index]);
        add("line", { class: "bar", x1: at, x2: at, y1: y(one.lower[index]), y2: y(one.upper[index]) });
        add("circle", { class: "dot", cx: at, cy: y(one.point[index]), r: 5 });
      }
    } else {
      add("polygon", { class: "band", points: [...line(places, "upper"), ...line(places, "lower").reverse()].join(" ") });
      add("polyline", { class: "line", points: line(places, "point").join(" ") });
    }
  }
  if (baseline) add("line", { class: "none", x1: left, x2: right, y1: y(baseline.point), y2: y(baseline.point) });
  if (here >= Math.min(low, high) && here <= Math.max(low, high)) {
    add("line", { class: "here", x1: x(here), x2: x(here), y1: top, y2: floor });
  }
  bars(add, one.bins, x, bottom + 4, floor);
  if (present !== undefined && present >= Math.min(low, high) && present <= Math.max(low, high)) {
    add("polygon", { class: "now", points: diamond(x(present), floor, 7) });
  }
  add("line", { class: "axis", x1: left, x2: right, y1: floor, y2: floor });
  for (const value of ticks(one, low, high, width < 480)) {
    add("line", { class: "axis", x1: x(value), x2: x(value), y1: floor, y2: floor + 5 });
    add("text", { x: x(value), y: floor + 20, "text-anchor": anchor(x(value), width, 40) }, one.texts?.[value] ?? number(value));
  }
  add("text", { class: "strong", x: (left + right) / 2, y: floor + 40, "text-anchor": "middle" }, one.name);
}

// Texts are all named, levels as far as there is room, and other values evenly.
function ticks(one, low, high, narrow) {
  if (one.texts) return one.at;
  if (one.levels) return one.at.filter((_, index) => index % Math.ceil(one.at.length / (narrow ? 5 : 9)) === 0);
  const count = narrow ? 2 : 4;
  return Array.from({ length: low === high ? 1 : count + 1 }, (_, step) => low + ((high - low) * step) / count);
}

function bars(add, bins, x, top, floor) {
  if (!bins) return;
  const most = Math.max(5, ...bins.counts.map((count) => count ?? 0));
  bins.counts.forEach((count, index) => {
    if (count === 0) return;
    const from = x(bins.low[index]), to = x(bins.high[index]);
    const height = Math.max(2, ((count ?? 2.5) / most) * (floor - top));
    add("rect", { class: count === null ? "few" : "rows", x: from + 0.5, y: floor - height,
      width: Math.max(0.5, to - from - 1), height });
  });
}

export function outcomes(place, one) {
  const { width, add } = canvas(place, 250, `expected ${one.label} after the setting, beside the desired region`);
  const left = 12, right = width - 12, top = 26, bottom = 196;
  const low = one.edges[0], high = one.edges[one.edges.length - 1];
  const x = spread(low, high, left, right);
  const most = Math.max(...one.after, ...(one.before ?? [0]), 1e-300);
  const y = spread(0, most, bottom, top + 4);
  const clip = (value) => Math.min(right, Math.max(left, x(value)));
  const from = one.lower === null ? left : clip(one.lower), to = one.upper === null ? right : clip(one.upper);
  if (one.lower !== null || one.upper !== null) {
    add("rect", { class: "region", x: from, y: top, width: Math.max(0, to - from), height: bottom - top });
    add("text", { x: (from + to) / 2, y: top - 9, "text-anchor": anchor((from + to) / 2, width, 50) }, "desired region");
  }
  const steps = (values) => values.flatMap((value, index) =>
    [`${x(one.edges[index])},${y(value)}`, `${x(one.edges[index + 1])},${y(value)}`]);
  add("polygon", { class: "after", points: [`${left},${bottom}`, ...steps(one.after), `${right},${bottom}`].join(" ") });
  if (one.before) add("polyline", { class: "none", points: steps(one.before).join(" ") });
  for (const bound of [one.lower, one.upper]) {
    if (bound === null || bound < low || bound > high) continue;
    add("line", { class: "bound", x1: x(bound), x2: x(bound), y1: top, y2: bottom + 5 });
  }
  add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
  const count = width < 480 ? 2 : 4;
  for (let step = 0; step <= count; step += 1) {
    const value = low + ((high - low) * step) / count;
    add("line", { class: "axis", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 5 });
    add("text", { x: x(value), y: bottom + 20, "text-anchor": anchor(x(value), width, 40) }, number(value));
  }
  add("text", { class: "strong", x: (left + right) / 2, y: bottom + 42, "text-anchor": "middle" }, one.label);
}

// The key of a drawing: a small piece of it beside its meaning.
export function key(entries) {
  const list = document.createElement("ul");
  list.className = "key";
  for (const [kind, meaning] of entries) {
    const item = document.createElement("li");
    const svg = element("svg", { width: 26, height: 14, viewBox: "0 0 26 14", "aria-hidden": "true" });
    const filled = ["band", "gone", "region", "after", "altered"].includes(kind);
    svg.append(kind === "trial" ? element("circle", { class: kind, cx: 13, cy: 7, r: 4 }) : kind === "now" ? element("polygon", { class: kind, points: diamond(13, 7, 6) }) : filled ? element("rect", { class: kind, x: 1, y: 1, width: 24, height: 12 })
      : element("line", { class: kind, x1: 1, x2: 25, y1: 7, y2: 7 }));
    item.append(svg, meaning);
    list.append(item);
  }
  return list;
}
