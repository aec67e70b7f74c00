// Tables. A short one is plain; a long one holds the rows in view only, and is as quick with thousands of rows as with
// ten: sorting orders numbers, scrolling swaps some thirty rows.

import { el, replace } from "./dom.js";
import { count } from "./format.js";

const ROW = 38;
const MORE = 12;
const PRINTED = 500;

export function plainTable(caption, heads, rows, { numeric = [] } = {}) {
  const kind = (i) => (numeric.includes(i) ? "number" : null);
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head, i) => el("th", { scope: "col", class: kind(i) }, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) =>
        i === 0 ? el("th", { scope: "row" }, cell) : el("td", { class: kind(i) }, cell)))))));
}

// `columns`: [{head, cell(row), key(row), numeric, descending}]; `rows` are of any kind.
export class LongTable {
  constructor(caption, columns, rows, { sorted = 0, descending = false, label = "rows" } = {}) {
    this.columns = columns;
    this.rows = rows;
    this.shown = rows.map((_, i) => i);
    this.sorted = sorted;
    this.descending = descending;
    this.keep = () => true;
    this.label = label;
    this.heads = columns.map((column, i) => {
      const button = el("button", { type: "button", on: { click: () => this.sort(i) } }, column.head, el("span", { class: "arrow", "aria-hidden": "true" }));
      return el("th", { scope: "col", class: column.numeric ? "number" : column.wide ? "wide" : null }, button);
    });
    this.body = el("tbody");
    this.said = el("p", { class: "count", role: "status" });
    this.table = el("table", { class: "long" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, this.heads)), this.body);
    this.frame = el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption, on: { scroll: () => this.draw() } }, this.table);
    this.node = el("div", {}, this.said, this.frame);
    this.from = -1;
    this.order();
    // On paper nobody scrolls: the first rows are all drawn.
    window.addEventListener("beforeprint", () => this.fill(0, Math.min(this.shown.length, PRINTED)));
    window.addEventListener("afterprint", () => { this.from = -1; this.draw(); });
  }

  sort(column) {
    this.descending = this.sorted === column ? !this.descending : Boolean(this.columns[column].descending);
    this.sorted = column;
    this.order();
  }

  filter(keep) {
    this.keep = keep;
    this.order();
  }

  order() {
    const key = this.columns[this.sorted].key;
    const keys = this.rows.map(key);
    const kept = [];
    for (let i = 0; i < this.rows.length; i += 1) if (this.keep(this.rows[i])) kept.push(i);
    const turn = this.descending ? -1 : 1;
    kept.sort((a, b) => {
      if (keys[a] === keys[b]) return a - b;
      if (keys[a] === null) return 1;
      if (keys[b] === null) return -1;
      return (keys[a] < keys[b] ? -1 : 1) * turn;
    });
    this.shown = kept;
    this.heads.forEach((head, i) => {
      if (i === this.sorted) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      head.querySelector(".arrow").textContent = i === this.sorted ? (this.descending ? " ▼" : " ▲") : "";
    });
    this.said.textContent = kept.length === this.rows.length ? `${count(kept.length)} ${this.label}` : `${count(kept.length)} of ${count(this.rows.length)} ${this.label}`;
    this.table.setAttribute("aria-rowcount", kept.length + 1);
    this.frame.scrollTop = 0;
    this.from = -1;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.min(Math.floor(this.frame.scrollTop / ROW) - MORE, Math.max(0, this.shown.length - 1)));
    const from = first - (first % 4);
    const high = this.frame.clientHeight || 480;
    const to = Math.min(this.shown.length, from + Math.ceil(high / ROW) + 2 * MORE);
    if (from !== this.from || to !== this.to) this.fill(from, to);
  }

  // Draw these rows, and room for the others.
  fill(from, to) {
    this.from = from;
    this.to = to;
    const space = (rows) => {
      const cell = el("td", { colspan: this.columns.length });
      cell.style.height = `${rows * ROW}px`;
      return el("tr", { class: "space", "aria-hidden": "true" }, cell);
    };
    const lines = [];
    for (let i = from; i < to; i += 1) {
      const row = this.rows[this.shown[i]];
      lines.push(el("tr", { "aria-rowindex": i + 2 }, this.columns.map((column) => el("td", { class: column.numeric ? "number" : column.wide ? "wide" : null }, column.cell(row)))));
    }
    replace(this.body, from > 0 && space(from), lines, to < this.shown.length && space(this.shown.length - to));
  }
}
