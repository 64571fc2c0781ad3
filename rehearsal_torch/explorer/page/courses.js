// Drawings of courses: a series of numbers over the steps of an episode, or over trials.

import { anchor, canvas, number, scale } from "/page/chart.js";

// Round numbers between two ends, about as many as asked for.
export function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((factor) => factor >= rough);
  const marks = [];
  for (let multiple = Math.ceil(low / step); multiple * step <= high + step * 1e-9; multiple += 1) marks.push(Number((multiple * step).toPrecision(12)));
  return marks;
}

const numbers = (...lists) => lists.flat().filter((value) => Number.isFinite(value));

// The frame of a drawing over steps: scales, grid and axes.
export function frame(container, height, label, values, steps, unit) {
  const { width, add, svg } = canvas(container, height, label);
  const left = 52, right = width - 12, top = 12, bottom = height - 48;
  let low = Math.min(...values), high = Math.max(...values);
  if (!(high > low)) [low, high] = [low - 1, high + 1];
  const margin = 0.06 * (high - low);
  [low, high] = [low - margin, high + margin];
  const x = scale(steps[0], steps[steps.length - 1], left + 8, right - 8), y = scale(low, high, bottom, top);
  for (const tick of ticks(low, high, 4)) {
    add("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) });
    add("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, number(tick));
  }
  add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
  const stride = Math.max(1, Math.ceil(steps.length / ((right - left) / 34)));
  steps.forEach((step, index) => {
    if (index % stride) return;
    add("line", { class: "axis", x1: x(step), x2: x(step), y1: bottom, y2: bottom + 4 });
    add("text", { x: x(step), y: bottom + 18, "text-anchor": "middle" }, String(step));
  });
  add("text", { class: "strong", x: (left + right) / 2, y: height - 8, "text-anchor": anchor((left + right) / 2, width, 40) }, unit);
  return { add, svg, x, y, left, right, top, bottom };
}

// One quantity as observed, and as replayed under other actions, with the range over the models; the steps are
// numbered from `start`.
export function course(container, series, changed, heading, time, start) {
  const values = numbers(series.observed, series.after ?? [], series.lower ?? [], series.upper ?? []);
  const scope = series.after ? "as observed and under the other actions" : "as observed";
  const steps = series.observed.map((_, step) => start + step);
  const { add, x: position, y, top, bottom } = frame(container, 220, `${heading} over time, ${scope}`, values, steps, time);
  const x = (step) => position(start + step);
  const half = steps.length > 1 ? Math.min(9, (x(1) - x(0)) / 2) : 9;
  for (const step of changed) {
    add("rect", { class: "altered", x: x(step) - half, y: top, width: 2 * half, height: bottom - top });
  }
  const line = (list) => list.map((value, step) => `${x(step)},${y(value)}`);
  if (series.lower && series.upper) {
    add("polygon", { class: "band", points: [...line(series.upper), ...line(series.lower).reverse()].join(" ") });
  }
  if (series.after) {
    add("polyline", { class: "line", points: line(series.after).join(" ") });
    series.after.forEach((value, step) => add("circle", { class: "dot", cx: x(step), cy: y(value), r: 4 }));
  }
  add("polyline", { class: "none", points: line(series.observed).join(" ") });
}

// The rewards of trials, the best so far, and the recommended action's expected reward.
export function rewards(container, trials, recommendation) {
  const ends = recommendation ? [recommendation.predicted, recommendation.lower, recommendation.upper] : [];
  const label = `rewards of ${trials.numbers.length} completed trials, and the best so far`;
  const { add, x, y, left, right } = frame(container, 260, label, numbers(trials.rewards, ends), trials.numbers, "trial");
  if (recommendation && Number.isFinite(recommendation.lower) && Number.isFinite(recommendation.upper)) {
    add("rect", { class: "after", x: left, y: y(recommendation.upper), width: right - left, height: Math.max(1, y(recommendation.lower) - y(recommendation.upper)) });
  }
  if (recommendation) add("line", { class: "bound", x1: left, x2: right, y1: y(recommendation.predicted), y2: y(recommendation.predicted) });
  const points = [];
  trials.best.forEach((value, index) => {
    if (index) points.push(`${x(trials.numbers[index])},${y(trials.best[index - 1])}`);
    points.push(`${x(trials.numbers[index])},${y(value)}`);
  });
  add("polyline", { class: "line", points: points.join(" ") });
  trials.rewards.forEach((value, index) => add("circle", { class: "trial", cx: x(trials.numbers[index]), cy: y(value), r: 4 }));
}
