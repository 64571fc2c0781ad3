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
  const node = document.createElementNS(NAME, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

export function canvas(container, height, label) {
  const width = Math.max(260, container.clientWidth);
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  container.replaceChildren(svg);
  return { svg, width, add: (name, attributes, text) => svg.append(element(name, attributes, text)) };
}

export const scale = (from, to, low, high) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);

// Left, centre or right, so that a text stays within the drawing.
export function anchor(x, width, half) {
  if (x < half) return "start";
  return x > width - half ? "end" : "middle";
}

// The claim with its interval; no action is a dashed line, leaving the present values a diamond.
export function interval(container, estimate, baseline, unchanged, texts) {
  const unchangedText = unchanged ? `; present values kept: ${texts.unchanged}` : "";
  const label = `claim ${texts.point}, ${texts.interval}${unchangedText}`;
  const { width, add } = canvas(container, 64, label);
  const x = scale(0, 1, 10, width - 10);
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

// The segments of a curve that have numbers, as lists of indices.
function segmentsOf(values) {
  const segments = [];
  values.forEach((value, index) => {
    if (value === null) return;
    if (index && values[index - 1] !== null) segments[segments.length - 1].push(index);
    else segments.push([index]);
  });
  return segments;
}

export function curve(container, series, baseline, setting, present) {
  const { width, add } = canvas(container, 300, `probability over ${series.name}; the numbers are those of the answer above`);
  const left = 44, right = width - 12, top = 12, bottom = 212, floor = 256;
  // Levels and classes have room for a bar on either side of their places.
  const gaps = series.at.slice(1).map((value, index) => value - series.at[index]);
  const room = series.levels ? (gaps.length ? Math.min(...gaps) : 1) / 2 : 0;
  const low = Math.min(series.at[0] - room, ...(series.bins?.low ?? [])), high = Math.max(series.at.at(-1) + room, ...(series.bins?.high ?? []));
  const x = scale(low, high, left, right), y = scale(0, 1, bottom, top);
  const between = (index) => (index === 0 ? left : index === series.at.length ? right : x((series.at[index - 1] + series.at[index]) / 2));
  series.point.forEach((value, index) => {
    if (value !== null) return;
    const from = between(index), to = between(index + 1);
    add("rect", { class: "gone", x: from, y: top, width: Math.max(0, to - from), height: bottom - top });
  });
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    add("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) });
    add("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, String(tick));
  }
  if (series.point.every((value) => value === null)) {
    add("text", { class: "strong", x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" },
      "outside the data");
  }
  const line = (places, part) => places.map((index) => `${x(series.at[index])},${y(series[part][index])}`);
  for (const places of segmentsOf(series.point)) {
    if (series.levels || places.length === 1) {
      for (const index of places) {
        const at = x(series.at[index]);
        add("line", { class: "bar", x1: at, x2: at, y1: y(series.lower[index]), y2: y(series.upper[index]) });
        add("circle", { class: "dot", cx: at, cy: y(series.point[index]), r: 5 });
      }
    } else {
      add("polygon", { class: "band", points: [...line(places, "upper"), ...line(places, "lower").reverse()].join(" ") });
      add("polyline", { class: "line", points: line(places, "point").join(" ") });
    }
  }
  if (baseline) add("line", { class: "none", x1: left, x2: right, y1: y(baseline.point), y2: y(baseline.point) });
  if (setting >= Math.min(low, high) && setting <= Math.max(low, high)) {
    add("line", { class: "here", x1: x(setting), x2: x(setting), y1: top, y2: floor });
  }
  bars(add, series.bins, x, bottom + 4, floor);
  if (present !== undefined && present >= Math.min(low, high) && present <= Math.max(low, high)) {
    add("polygon", { class: "now", points: diamond(x(present), floor, 7) });
  }
  add("line", { class: "axis", x1: left, x2: right, y1: floor, y2: floor });
  for (const value of ticks(series, low, high, width < 480)) {
    add("line", { class: "axis", x1: x(value), x2: x(value), y1: floor, y2: floor + 5 });
    add("text", { x: x(value), y: floor + 20, "text-anchor": anchor(x(value), width, 40) }, series.texts?.[value] ?? number(value));
  }
  add("text", { class: "strong", x: (left + right) / 2, y: floor + 40, "text-anchor": "middle" }, series.name);
}

// Ticks: all texts, levels as far as there is room, other values evenly.
function ticks(series, low, high, narrow) {
  if (series.texts) return series.at;
  if (series.levels) return series.at.filter((_, index) => index % Math.ceil(series.at.length / (narrow ? 5 : 9)) === 0);
  const count = narrow ? 2 : 4;
  return Array.from({ length: low === high ? 1 : count + 1 }, (_, step) => low + ((high - low) * step) / count);
}

function bars(add, bins, x, top, floor) {
  if (!bins) return;
  const largest = Math.max(5, ...bins.counts.map((count) => count ?? 0));
  bins.counts.forEach((count, index) => {
    if (count === 0) return;
    const from = x(bins.low[index]), to = x(bins.high[index]);
    const height = Math.max(2, ((count ?? 2.5) / largest) * (floor - top));
    add("rect", { class: count === null ? "few" : "rows", x: from + 0.5, y: floor - height,
      width: Math.max(0.5, to - from - 1), height });
  });
}

export function outcomes(container, density) {
  const { width, add } = canvas(container, 250, `expected ${density.label} after the setting, beside the desired region`);
  const left = 12, right = width - 12, top = 26, bottom = 196;
  const low = density.edges[0], high = density.edges[density.edges.length - 1];
  const x = scale(low, high, left, right);
  const largest = Math.max(...density.after, ...(density.before ?? [0]), 1e-300);
  const y = scale(0, largest, bottom, top + 4);
  const clip = (value) => Math.min(right, Math.max(left, x(value)));
  const from = density.lower === null ? left : clip(density.lower), to = density.upper === null ? right : clip(density.upper);
  if (density.lower !== null || density.upper !== null) {
    add("rect", { class: "region", x: from, y: top, width: Math.max(0, to - from), height: bottom - top });
    add("text", { x: (from + to) / 2, y: top - 9, "text-anchor": anchor((from + to) / 2, width, 50) }, "desired region");
  }
  const steps = (values) => values.flatMap((value, index) =>
    [`${x(density.edges[index])},${y(value)}`, `${x(density.edges[index + 1])},${y(value)}`]);
  add("polygon", { class: "after", points: [`${left},${bottom}`, ...steps(density.after), `${right},${bottom}`].join(" ") });
  if (density.before) add("polyline", { class: "none", points: steps(density.before).join(" ") });
  for (const bound of [density.lower, density.upper]) {
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
  add("text", { class: "strong", x: (left + right) / 2, y: bottom + 42, "text-anchor": "middle" }, density.label);
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
