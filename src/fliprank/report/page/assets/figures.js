// Tables of figures, comparisons of runs, values of queries.

import { el } from "./dom.js";
import { fixed, visible } from "./format.js";
import { LongTable, plainTable } from "./table.js";
import { setTable } from "./verdict.js";

export function textTable(table) {
  return plainTable(visible(table.caption), table.heads.map(visible), table.rows.map((row) => row.map(visible)), { numeric: table.numeric });
}

export function drawFigures(data) {
  return [data.tables.map(textTable), data.notes.length > 0 && el("ul", { class: "note" }, data.notes.map((note) => el("li", {}, visible(note))))];
}

export function drawComparisons(data) {
  return data.sets.map((set) => setTable(set, data.names));
}

export function drawValues(data) {
  const rows = data.rows.map(([id, text, value]) => ({ id: visible(id), text: visible(text), value }));
  const columns = [
    { head: "Query", wide: true, cell: (row) => (row.text ? [el("span", { class: "id" }, row.id), ` ${row.text}`] : row.id), key: (row) => row.text || row.id },
    { head: "Value", numeric: true, cell: (row) => fixed(row.value), key: (row) => row.value },
  ];
  return new LongTable(`${data.measure} by query: ${data.on}`, columns, rows, { sorted: 1, descending: data.sign < 0, label: "queries" }).node;
}
