// Drawings of courses: a series of numbers over the steps of an episode, or over trials.

import { anchor, canvas, number, spread } from "/page/chart.js";

// Round numbers between two ends, about as many as asked for.
export function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

const numbers = (...lists) => lists.flat().filter((value) => Number.isFinite(value));

// The frame of a drawing over steps: scales, grid and axes.
export function frame(place, height, label, values, steps, unit) {
  const { width, add, svg } = canvas(place, height, label);
  const left = 52, right = width - 12, top = 12, bottom = height - 48;
  let low = Math.min(...values), high = Math.max(...values);
  if (!(high > low)) [low, high] = [low - 1, high + 1];
  const margin = 0.06 * (high - low);
  [low, high] = [low - margin, high + margin];
  const x = spread(steps[0], steps[steps.length - 1], left + 8, right - 8), y = spread(low, high, bottom, top);
  for (const tick of ticks(low, high, 4)) {
    add("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) });
    add("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, number(tick));
  }
  add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
  const every = Math.max(1, Math.ceil(steps.length / ((right - left) / 34)));
  steps.forEach((step, index) => {
    if (index % every) return;
    add("line", { class: "axis", x1: x(step), x2: x(step), y1: bottom, y2: bottom + 4 });
    add("text", { x: x(step), y: bottom + 18, "text-anchor": "middle" }, String(step));
  });
  add("text", { class: "strong", x: (left + right) / 2, y: height - 8, "text-anchor": anchor((left + right) / 2, width, 40) }, unit);
  return { add, svg, x, y, left, right, top, bottom };
}

// One quantity as observed, and as replayed under other actions, with the range over the models; the steps are
// numbered from `start`.
export function course(place, one, changed, heading, time, start) {
  const values = numbers(one.observed, one.after ?? [], one.lower ?? [], one.upper ?? []);
  const told = one.after ? "as observed and under the other actions" : "as observed";
  const steps = one.observed.map((_, step) => start + step);
  const { add, x: at, y, top, bottom } = frame(place, 220, `${heading} over time, ${told}`, values, steps, time);
  const x = (step) => at(start + step);
  const half = steps.length > 1 ? Math.min(9, (x(1) - x(0)) / 2) : 9;
  for (const step of changed) {
    add("rect", { class: "altered", x: x(step) - half, y: top, width: 2 * half, height: bottom - top });
  }
  const line = (list) => list.map((value, step) => `${x(step)},${y(value)}`);
  if (one.lower && one.upper) {
    add("polygon", { class: "band", points: [...line(one.upper), ...line(one.lower).reverse()].join(" ") });
  }
  if (one.after) {
    add("polyline", { class: "line", points: line(one.after).join(" ") });
    one.after.forEach((value, step) => add("circle", { class: "dot", cx: x(step), cy: y(value), r: 4 }));
  }
  add("polyline", { class: "none", points: line(one.observed).join(" ") });
}

// The rewards of trials, the best so far, and the recommended action's expected reward.
export function rewards(place, one, adopted) {
  const ends = adopted ? [adopted.predicted, adopted.lower, adopted.upper] : [];
  const label = `rewards of ${one.numbers.length} completed trials, and the best so far`;
  const { add, x, y, left, right } = frame(place, 260, label, numbers(one.rewards, ends), one.numbers, "trial");
  if (adopted && Number.isFinite(adopted.lower) && Number.isFinite(adopted.upper)) {
    add("rect", { class: "after", x: left, y: y(adopted.upper), width: right - left, height: Math.max(1, y(adopted.lower) - y(adopted.upper)) });
  }
  if (adopted) add("line", { class: "bound", x1: left, x2: right, y1: y(adopted.predicted), y2: y(adopted.predicted) });
  const points = [];
  one.best.forEach((value, index) => {
    if (index) points.push(`${x(one.numbers[index])},${y(one.best[index - 1])}`);
    points.push(`${x(one.numbers[index])},${y(value)}`);
  });
  add("polyline", { class: "line", points: points.join(" ") });
  one.rewards.forEach((value, index) => add("circle", { class: "trial", cx: x(one.numbers[index]), cy: y(value), r: 4 }));
}
