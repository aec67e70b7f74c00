// The learning curve, and what more judgements would bring.

import { el } from "./dom.js";
import { signed, count } from "./format.js";
import { chart } from "./chart.js";
import { plainTable } from "./table.js";

export function drawOutlook(data) {
  const rankers = [...new Set(data.points.map(([ranker]) => ranker))];
  const series = [];
  const areas = [];
  rankers.forEach((ranker, i) => {
    const own = data.points.filter((point) => point[0] === ranker);
    const x = own.map((point) => point[1]);
    const name = rankers.length > 1 ? `${ranker}: ` : "";
    series.push({ name: `${name}held-out queries, band 95%`, x, y: own.map((point) => point[2]), series: 2 * i, dots: true });
    series.push({ name: `${name}its own training queries`, x, y: own.map((point) => point[5]), series: 2 * i + 1, dots: true });
    areas.push({ x, low: own.map((point) => point[3]), high: own.map((point) => point[4]), series: 2 * i });
  });
  const sizes = [...new Set(data.points.map((point) => point[1]))];
  return [
    series.length > 0 && chart({ title: `${data.measure} by the number of training queries (${data.repeats} repeats)`, x: { label: "training queries", log: sizes[0] > 0, ticks: sizes, range: [sizes[0] * 0.95, sizes.at(-1) * 1.05] }, y: { label: data.measure }, series, areas, height: 280 }),
    data.gains.length > 0 && plainTable("What more judged queries would bring, by the law fitted to this curve", ["From", "To", "Gain", "95% interval"],
      data.gains.map(([from, to, gain, low, high]) => [count(from), count(to), signed(gain), `${signed(low)} to ${signed(high)}`]), { numeric: [0, 1, 2, 3] }),
    series.length === 0 && data.gains.length === 0 && el("p", { class: "note" }, "There are too few training queries for a curve."),
  ];
}
