// Before and after, with interval and p; what else changed; what was written and how to use it.

import { el, svg, freshId } from "./dom.js";
import { fixed, signed, pValue, visible } from "./format.js";
import { plainTable } from "./table.js";

const MARK = { adopt: "✓", keep: "✕", "not shown": "?", "not proven": "?" };

function interval(row, reach) {
  const width = 220;
  const at = (x) => width / 2 + (x / reach) * (width / 2 - 8);
  const sure = row.interval[0] > 0 || row.interval[1] < 0;
  const kind = sure ? (row.difference * row.sign > 0 ? "gain" : "loss") : "same";
  const named = freshId("interval");
  return svg("svg", { viewBox: `0 0 ${width} 26`, width, height: 26, role: "img", "aria-labelledby": named, class: `forest ${kind}` },
    svg("title", { id: named }, `${row.measure}: ${signed(row.difference)}, 95% interval ${signed(row.interval[0])} to ${signed(row.interval[1])}`),
    svg("line", { x1: width / 2, x2: width / 2, y1: 2, y2: 24, class: "zero" }),
    svg("line", { x1: at(row.interval[0]), x2: at(row.interval[1]), y1: 13, y2: 13, class: "whisker" }),
    svg("circle", { cx: at(row.difference), cy: 13, r: 5, class: "dot" }));
}

export function setTable(set, names) {
  const reach = Math.max(1e-9, ...set.measures.flatMap((row) => row.interval.map(Math.abs)));
  const queries = set.measures.length ? set.measures[0].queries : 0;
  const rows = set.measures.map((row) => {
    const [helped, hurt] = row.sign > 0 ? [row.better, row.worse] : [row.worse, row.better];
    return [row.measure, fixed(row.default), el("strong", {}, fixed(row.tuned)), signed(row.difference), interval(row, reach),
      `${signed(row.interval[0], 3)} to ${signed(row.interval[1], 3)}`, pValue(row.p), String(helped), String(hurt)];
  });
  const heads = ["Measure", names[0], names[1], "Change", "Change with its 95% interval; the line is no change", "95% interval", "p", "Helped", "Hurt"];
  return plainTable(`${set.title} (${queries})`, heads, rows, { numeric: [1, 2, 3, 5, 6, 7, 8] });
}

export function drawVerdict(data) {
  const first = data.sets[0]?.measures[0];
  const figures = first && el("dl", { class: "figures" },
    [[`${first.measure}, ${data.names[0]}`, fixed(first.default)], [`${first.measure}, ${data.names[1]}`, fixed(first.tuned)],
      ["Change", signed(first.difference)], ["p", pValue(first.p)]].map(([what, value]) => el("div", {}, el("dt", {}, what), el("dd", {}, value))));
  return [
    el("p", { class: `badge ${data.word.replace(" ", "-")}` }, el("span", { "aria-hidden": "true" }, MARK[data.word]), ` ${data.headline}`),
    figures,
    data.also.length > 0 && el("ul", { class: "also" }, data.also.map((each) => el("li", {}, visible(each)))),
    data.sets.map((set) => setTable(set, data.names)),
    data.written.length > 0 && el("div", { class: "written" }, el("h3", {}, "What was written, and how to use it"),
      el("dl", {}, data.written.map(([what, why]) => [el("dt", {}, el("code", {}, visible(what))), el("dd", {}, visible(why))]))),
  ];
}
