// Parameters: a strip each with the values that are as good, and the measure along each with its flips.

import { el, svg, freshId } from "./dom.js";
import { fixed, signed, significant, count, visible, DASH } from "./format.js";
import { chart } from "./chart.js";
import { plainTable } from "./table.js";

function bounds(path, good) {
  if (path) return [path.low, path.high];
  return good ? [Math.min(good.low, 0), good.high] : null;
}

function strip(row, path) {
  const range = bounds(path, row.as_good);
  if (!range) return row.moves === null ? "fixed" : DASH;
  const width = 200;
  const at = (x) => 8 + ((Math.min(Math.max(x, range[0]), range[1]) - range[0]) / (range[1] - range[0] || 1)) * (width - 16);
  const named = freshId("strip");
  const good = row.as_good;
  const said = good ? `${significant(good.low, 3)} to ${significant(good.high, 3)} are as good` : "";
  return svg("svg", { viewBox: `0 0 ${width} 26`, width, height: 26, role: "img", "aria-labelledby": named, class: "strip" },
    svg("title", { id: named }, `${row.name}: default ${significant(row.default)}, tuned ${significant(row.tuned)}; ${said}`),
    svg("line", { x1: 8, x2: width - 8, y1: 13, y2: 13, class: "axis" }),
    good && svg("rect", { x: at(good.low), width: Math.max(2, at(good.high) - at(good.low)), y: 8, height: 10, rx: 3, class: "band" }),
    svg("path", { d: `M${at(row.default)} 4V22`, class: "old" }),
    svg("circle", { cx: at(row.tuned), cy: 13, r: 5, class: "new" }));
}

function goodText(row) {
  const good = row.as_good;
  if (!good) return row.moves === null ? "fixed" : DASH;
  const any = row.low === good.low && row.high === good.high ? " (any)" : "";
  return `${good.open_low ? "≤ " : ""}${significant(good.low, 3)} to ${good.open_high ? "≥ " : ""}${significant(good.high, 3)}${any}`;
}

function along(name, path, data, goodRange, page) {
  const value = path.y[Math.max(0, path.x.findIndex((edge, i) => path.x[i + 1] >= path.value))];
  const old = path.y[Math.max(0, path.x.findIndex((edge, i) => path.x[i + 1] >= path.default))];
  const marks = [{ name: `tuned, ${significant(path.value)}`, x: path.value, y: value, series: 0 }];
  if (path.default !== path.value) marks.push({ name: `default, ${significant(path.default)}`, x: path.default, y: old, series: 1 });
  const bands = goodRange ? [{ name: "as good as tuned (95%)", low: goodRange.low, high: goodRange.high }] : [];
  const how = path.exact ? "every flip is known exactly" : "flips were looked for in cells";
  const figure = chart({
    title: `${data.measure} along ${name}`,
    summary: `${count(path.flips)} flips; ${how}`,
    x: { label: name, range: [path.low, path.high] },
    y: { label: data.measure },
    series: [{ name: `${data.measure}, all else as tuned`, x: path.x, y: path.y, step: true }],
    bands, marks,
    rug: path.at.length ? { name: `flips (${count(path.flips)})`, x: path.at } : null,
    width: 460, height: 230,
  });
  const told = path.told.map(([at, query, up, down, upLabel, downLabel, gain]) =>
    [significant(at), visible(query), labelled(page, up, upLabel), labelled(page, down, downLabel), signed(gain)]);
  if (told.length) {
    figure.append(el("details", {}, el("summary", {}, `The flips along ${name} that count most`),
      plainTable(`As ${name} rises past a value, one document overtakes another (label in brackets); ${how}`,
        [name, "Query", "Rises", "Falls", `Gain of the query`], told, { numeric: [0, 4] })));
  }
  return figure;
}

function labelled(page, number, label) {
  const known = page.documents[number];
  return `${known.title || known.id} (${label ?? "unjudged"})`;
}

export function drawParameters(data, page) {
  const rows = data.rows.map((row) => {
    const path = data.paths[row.moves] ?? null;
    return [visible(row.name), significant(row.default), el("strong", {}, significant(row.tuned)), strip(row, path), goodText(row), path ? fixed(path.sensitivity) : DASH];
  });
  const pictures = Object.entries(data.paths).sort((a, b) => b[1].sensitivity - a[1].sensitivity);
  const good = Object.fromEntries(data.rows.map((row) => [row.moves, row.as_good]));
  return [
    plainTable("Parameters before and after", ["Parameter", "Default", "Tuned", "Where it may lie: band as good, line default, dot tuned", "As good (95%)", "Most it costs"], rows, { numeric: [1, 2, 5] }),
    el("p", { class: "note" }, "As good: values of this parameter alone that no test tells from the tuned one. Most it costs: how far the measure falls, at worst, over the values drawn below, on training queries."),
    pictures.length > 0 && el("h3", {}, "The measure along each parameter"),
    pictures.length > 0 && el("p", { class: "note" }, `On ${data.on}, which the function was tuned on. The parameter that counts most comes first.`),
    el("div", { class: "gallery" }, pictures.map(([name, path]) => along(name, path, data, good[name], page))),
  ];
}
