// Scores at any parameters: the formulas of models/*.py, in the same order of operations. A scorer takes the values of
// all parameters and the input of a query, and gives the score of each of its rows.

function beta(b, ratio) {
  return 1 - b + b * (ratio > 0 ? ratio : 1);
}

// BM25F: sum over terms of weight f / (k + f), f = sum over fields of w tf / beta.
function saturating(values, input, inverse, joined) {
  const fields = inverse.length;
  const scaled = new Float64Array(fields);
  const k = values[0];
  return input.length.map((length, row) => {
    for (let s = 0; s < fields; s += 1) {
      const [w, b] = joined ? [1, values[1]] : [values[1 + 2 * s], values[2 + 2 * s]];
      scaled[s] = w / beta(b, length[s] * inverse[s]);
    }
    let total = 0;
    const lines = input.tf[row];
    for (let line = 0; line < lines.length; line += fields + 1) {
      let f = 0;
      for (let s = 0; s < fields; s += 1) f += scaled[s] * lines[line + 1 + s];
      if (k + f > 0) total += (input.weight[lines[line]] * f) / (k + f);
    }
    return total;
  });
}

// A BM25 per field, added up: w x / (x + k beta), x = tf^a.
function summed(values, input, inverse) {
  const fields = inverse.length;
  const norm = new Float64Array(fields);
  return input.length.map((length, row) => {
    for (let s = 0; s < fields; s += 1) norm[s] = Math.max(values[4 * s + 1] * beta(values[4 * s + 2], length[s] * inverse[s]), 1e-300);
    let total = 0;
    const lines = input.tf[row];
    for (let line = 0; line < lines.length; line += fields + 1) {
      let ofTerm = 0;
      for (let s = 0; s < fields; s += 1) {
        const tf = lines[line + 1 + s];
        const a = values[4 * s + 3];
        const x = a === 1 || tf === 0 || tf === 1 ? tf : Math.exp(a * Math.log(tf));
        ofTerm += (values[4 * s] * x) / (x + norm[s]);
      }
      total += input.weight[lines[line]] * ofTerm;
    }
    return total;
  });
}

// Query likelihood with two-stage smoothing; fields mixed by their weights.
function language(values, input, spec) {
  const fields = spec.fields;
  const lambda = values[0];
  const mu = (s) => values[spec.mixture ? 1 + s : 1];
  const weight = (s) => (spec.mixture ? values[1 + fields + s] : 1);
  let all = 0;
  for (let s = 0; s < fields; s += 1) all += weight(s);
  const share = (s) => (all > 0 ? weight(s) / all : 1 / fields);
  return input.length.map((length, row) => {
    let total = 0;
    const lines = input.tf[row];
    for (let line = 0; line < lines.length; line += fields + 1) {
      const term = lines[line];
      const times = input.weight[term];
      if (!(times > 0)) continue;
      let mixed = 0;
      for (let s = 0; s < fields; s += 1) {
        const known = input.background[term * fields + s];
        const size = mu(s) + length[s];
        const estimate = size > 0 ? (1 - lambda) * ((lines[line + 1 + s] + mu(s) * known) / size) + lambda * known : known;
        mixed += share(s) * estimate;
      }
      total += times * Math.log(Math.max(mixed, spec.least));
    }
    return total;
  });
}

function curveOf(values, column, transform) {
  const [k, a] = values;
  const curves = {
    none: (x) => x,
    log: (x) => Math.log(x + k),
    saturate: (x) => x / (Math.abs(x) + k),
    signed: (x) => x / (Math.abs(x) + k),
    recency: (x) => k / (x + k),
    sigmoid: (x) => (x > 0 ? 1 / (1 + (k / x) ** a) : a === 0 ? 0.5 : 0),
  };
  return column.map(curves[transform]);
}

function linear(values, table) {
  return table.map((row) => row.reduce((sum, z, i) => sum + values[1 + i] * z, values[0]));
}

function stacked(values, inputs, spec) {
  let at = 0;
  const scores = spec.parts.map((part, i) => {
    const own = values.slice(at, at + spec.sizes[i]);
    at += spec.sizes[i];
    return scoresOf(part, own, inputs[i]);
  });
  const weights = values.slice(at, at + scores.length);
  const features = spec.features ? linear([0, ...values.slice(at + scores.length)], inputs.at(-1)) : null;
  return scores[0].map((_, row) => scores.reduce((sum, own, i) => sum + (weights[i] === 0 ? 0 : weights[i] * own[row]), 0) + (features ? features[row] : 0));
}

function fusedRow(cells, spec, weights, k, tie) {
  const n = (j) => {
    if (cells[j] === null) return spec.ranked[j] ? 0 : NaN;
    return spec.ranked[j] ? 1 / (k + cells[j]) : cells[j];
  };
  let total = 0;
  let weight = 0;
  let top = -Infinity;
  for (let j = 0; j < spec.lists; j += 1) {
    const w = weights[j];
    if (spec.combine === "qdrant") {
      total += w > 0 && cells[j] !== null ? 1 / (k - 1 + cells[j] / w) : 0;
      continue;
    }
    const value = n(j);
    if (Number.isNaN(value)) continue;
    if (value * w > top) top = value * w;
    if (spec.combine === "geometric" || spec.combine === "harmonic") {
      if (!(value > 0)) continue;
      total += w * (spec.combine === "geometric" ? Math.log(value) : 1 / value);
    } else {
      total += w * value;
    }
    weight += w;
  }
  if (spec.combine === "sum" || spec.combine === "qdrant") return total;
  if (spec.combine === "max" || spec.combine === "dismax") {
    const best = top === -Infinity ? 0 : top;
    return best + tie * (total - best);
  }
  if (weight <= 0) return 0;
  if (spec.combine === "geometric") return Math.exp(total / weight);
  return spec.combine === "harmonic" ? weight / total : total / weight;
}

function fused(values, table, spec) {
  let weights = new Array(spec.lists).fill(1);
  if (spec.weights === "each") weights = values.slice(0, spec.lists);
  if (spec.weights === "share") weights = [1 - values[0], values[0]];
  weights = weights.map((w) => w * spec.factor);
  const k = spec.k_at === null ? spec.k : values[spec.k_at];
  const tie = spec.tie_at === null ? 0 : values[spec.tie_at];
  return table.map((cells) => fusedRow(cells, spec, weights, k, tie));
}

export function scoresOf(spec, values, input) {
  switch (spec.kind) {
    case "bm25": return saturating(values, input, spec.inverse, true);
    case "bm25f": return saturating(values, input, spec.inverse, false);
    case "bm25sum": return summed(values, input, spec.inverse);
    case "language": return language(values, input, spec);
    case "feature": return curveOf(values, input, spec.transform);
    case "linear": return linear(values, input);
    case "stack": return stacked(values, input, spec);
    case "fusion": return fused(values, input, spec);
    default: throw new Error(`no formula for ${spec.kind}`);
  }
}

// Rows by score, the best first; ties stay in the order of the rows, which is that of the tie rule.
export function ranked(scores) {
  return scores.map((_, row) => row).sort((a, b) => scores[b] - scores[a] || a - b);
}

// The law of flips (measures/law.py): gain x discount(rank) x what stands above.
export function measured(query, law, order) {
  let total = 0;
  let relevant = 0;
  let nonrelevant = 0;
  let judged = 0;
  let survival = 1;
  order.forEach((row, i) => {
    const gain = query.gains[row];
    if (gain === null) return;
    judged += 1;
    if (gain === 0) {
      nonrelevant += 1;
      return;
    }
    const place = law.ranks === 1 ? judged : law.ranks === 2 ? nonrelevant + 1 : i + 1;
    const discount = place <= query.discount.length ? query.discount[place - 1] : 0;
    const above = law.above === -1 ? 1 : law.above === -2 ? 1 + relevant : law.above === -3 ? survival : Number(relevant === law.above);
    total += gain * discount * above;
    relevant += 1;
    survival *= 1 - gain;
  });
  return total;
}
