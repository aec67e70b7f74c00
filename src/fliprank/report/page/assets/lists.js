// Two rankings of one query side by side; documents that moved are joined by lines; what caused each flip.

import { el, svg } from "./dom.js";
import { signed, significant, way, DASH } from "./format.js";
import { plainTable } from "./table.js";

const HIGH = 58;

function named(documents, number) {
  const known = documents[number];
  return known.title ? `${known.title} (${known.id})` : known.id;
}

function label(value) {
  return value === null ? el("span", { class: "label unjudged", title: "nobody judged it" }, "unjudged")
    : el("span", { class: `label ${value > 0 ? "relevant" : "not"}`, title: `label ${significant(value)}` }, `label ${significant(value)}`);
}

function moved(record) {
  const [, , before, after] = record;
  if (before === after) return "same place";
  if (before === null) return "new";
  if (after === null) return "gone";
  return after < before ? `▲ from ${before}` : `▼ from ${before}`;
}

function card(record, data, page, side) {
  const [document, judged, before, after, , , gain, reasons] = record;
  const known = page.documents[document];
  const why = side === 1 && before !== after && reasons.length > 0 && reasons.map(([part, push]) => `${data.parts[part]} ${signed(push, 2)}`).join(", ");
  const to = side === 0 ? (after === null ? "gone" : after === before ? "stays" : `to ${after}`) : moved(record);
  return el("li", { value: side === 0 ? before : after, class: before === after ? "still" : way((before ?? 1e9) - (after ?? 1e9)) },
    el("div", { class: "name", title: known.title ? `${known.title} (${known.id})` : known.id }, known.title || known.id),
    el("div", { class: "facts" }, label(judged), el("span", { class: "moved" }, to),
      side === 1 && gain !== null && gain !== 0 && el("span", { class: way(gain * data.sign) }, signed(gain, 3)),
      why && el("span", { class: "why", title: why }, why)));
}

export function drawLists(data, query, page) {
  const top = data.top;
  const side = (place) => query.documents.filter((record) => record[place] !== null && record[place] <= top).sort((a, b) => a[place] - b[place]);
  const before = side(2);
  const after = side(3);
  const rows = Math.max(before.length, after.length, 1);
  const y = (rank) => (rank === null || rank > top ? rows * HIGH : (rank - 0.5) * HIGH);
  const lines = svg("svg", { viewBox: `0 0 100 ${rows * HIGH}`, preserveAspectRatio: "none", class: "moves", "aria-hidden": "true" });
  lines.style.height = `${rows * HIGH}px`;
  for (const [, , from, to] of query.documents) {
    if ((from ?? Infinity) > top && (to ?? Infinity) > top) continue;
    const kind = from === to ? "still" : (to ?? Infinity) < (from ?? Infinity) ? "gain" : "loss";
    lines.append(svg("path", { d: `M0 ${y(from)}C40 ${y(from)} 60 ${y(to)} 100 ${y(to)}`, class: kind, "vector-effect": "non-scaling-stroke" }));
  }
  const list = (records, number) => el("div", {}, el("h4", {}, data.names[number]), records.length ? el("ol", {}, records.map((record) => card(record, data, page, number))) : el("p", {}, "empty"));
  const flips = query.flips.map(([up, down, rank, worth, part, parameter]) => [
    up === null ? DASH : named(page.documents, up), down === null ? DASH : named(page.documents, down), String(rank),
    el("span", { class: way(worth * data.sign) }, signed(worth)), part === null ? DASH : data.parts[part], parameter === null ? DASH : data.parameters[parameter]]);
  return el("div", { class: "compared" },
    el("div", { class: "sides" }, list(before, 0), lines, list(after, 1)),
    el("p", { class: "note legend-text" }, `The first ${top} ranks. Lines join the same document: `, el("span", { class: "gain" }, "solid for those that rose"), ", ", el("span", { class: "loss" }, "dashed for those that fell"), ". Beside a document on the right: what it gained or cost, and the terms and fields that pushed it most, in spreads of scores."),
    flips.length > 0 && plainTable("The flips that count most: one document overtakes another, and why",
      ["Rises", "Falls", "At rank", "Worth", "Field and term that did most", "Parameter that did most"], flips, { numeric: [2, 3] }));
}
