// A cascade: the measure after each stage with its interval, what is lost on the way, and what sizes would cost.

import { el } from "./dom.js";
import { percent, significant, visible } from "./format.js";
import { chart } from "./chart.js";
import { textTable } from "./figures.js";

export function drawStages(data) {
  const x = data.points.map(([stage]) => stage);
  const frontier = data.frontier;
  const chosen = frontier.find((choice) => choice[2]);
  return [
    chart({
      title: `${data.measure} after each stage, ${data.on}`,
      summary: data.points.map(([stage, , , , lost]) => `${percent(lost)} of the relevant lost before stage ${stage}`).join(", "),
      x: { label: "stage", ticks: x, range: [x[0] - 0.3, x.at(-1) + 0.3] },
      y: { label: data.measure },
      series: [{ name: `${data.measure}, band 95%`, x, y: data.points.map((point) => point[1]), dots: true }],
      areas: [{ x, low: data.points.map((point) => point[2]), high: data.points.map((point) => point[3]), series: 0 }],
      height: 240,
    }),
    textTable(data.table),
    frontier.length > 1 && chart({
      title: `${data.measure} by what a query costs, for the sizes on the frontier`,
      x: { label: "microseconds per query" },
      y: { label: data.measure },
      series: [{ name: "best for its cost", x: frontier.map((choice) => choice[0]), y: frontier.map((choice) => choice[1]), dots: frontier.length < 60 }],
      marks: chosen ? [{ name: `chosen: sizes ${visible(chosen[3])}, ${significant(chosen[0])} µs`, x: chosen[0], y: chosen[1], series: 1 }] : [],
      height: 240,
    }),
    frontier.length > 1 && el("p", { class: "note" }, `A cost includes: ${visible(data.includes)}.`),
  ];
}
