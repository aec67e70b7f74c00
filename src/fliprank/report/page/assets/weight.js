// The measure for every weight of the second of two lists.

import { el } from "./dom.js";
import { significant, count, visible } from "./format.js";
import { chart } from "./chart.js";

export function drawWeight(data) {
  return [
    chart({
      title: `${data.measure} by the ${visible(data.name)}`,
      summary: `${count(data.flips)} steps`,
      x: { label: `${visible(data.name)}: 0 is ${visible(data.ends[0])} alone, 1 is ${visible(data.ends[1])} alone`, range: [0, 1] },
      y: { label: data.measure },
      series: [{ name: `${data.measure} of training queries`, x: data.x, y: data.y, step: true }],
      bands: data.good ? [{ name: "as good as the best (95%)", low: data.good[0], high: data.good[1] }] : [],
      marks: [{ name: `best, ${significant(data.best[0])}`, x: data.best[0], y: data.best[1], series: 1 }],
      height: 300,
    }),
    el("p", { class: "note" }, "Every flip is known: between the steps nothing changes, and no grid could find more."),
  ];
}
