// How the fit came about: recipes with their weights, or epochs with the kept one marked.

import { el } from "./dom.js";
import { fixed, percent, visible } from "./format.js";
import { chart } from "./chart.js";
import { plainTable } from "./table.js";

const NAMES = { train: "training queries", valid: "validation queries", objective: "objective, training", valid_objective: "objective, validation" };

function drawn(data, names, title, label) {
  const series = names.filter((name) => data.series[name]).map((name) => ({ name: NAMES[name], x: data.epochs, y: data.series[name] }));
  if (!series.length) return null;
  const at = data.epochs.indexOf(data.kept);
  const marks = at < 0 || series[0].y[at] === null ? [] : [{ name: `kept, epoch ${data.kept}`, x: data.kept, y: series.at(-1).y[at] ?? series[0].y[at], series: series.length > 1 ? 1 : 0, line: true }];
  return chart({ title, x: { label: "epoch" }, y: { label }, series, marks, height: 240 });
}

export function drawTrail(data) {
  const rows = data.tried.map(([what, value, weight]) => [visible(what), fixed(value), percent(weight)]);
  return [
    data.epochs.length > 0 && drawn(data, ["train", "valid"], `${data.measure} after each epoch`, data.measure),
    data.epochs.length > 0 && drawn(data, ["objective", "valid_objective"], "The objective after each epoch", "objective"),
    rows.length > 0 && plainTable(`What was tried: ${data.measure} on held-out queries, and the weight in the result`, ["Tried", data.measure, "Weight"], rows, { numeric: [1, 2] }),
    el("p", { class: "note" }, `It ended because: ${visible(data.stopped)}.`),
  ];
}
