// Numbers as people read them. What is not known is a dash.

export const DASH = "–";

export function fixed(value, digits = 4) {
  return value === null || value === undefined ? DASH : value.toFixed(digits).replace("-", "−");
}

export function signed(value, digits = 4) {
  if (value === null || value === undefined) return DASH;
  return (value > 0 ? "+" : "") + fixed(value, digits);
}

export function significant(value, digits = 4) {
  if (value === null || value === undefined) return DASH;
  const rounded = Number(value.toPrecision(digits));
  return (Math.abs(rounded) >= 1e-4 || rounded === 0 ? String(rounded) : rounded.toExponential(1)).replace("-", "−");
}

export function pValue(p) {
  if (p === null || p === undefined) return DASH;
  return p < 0.0001 ? "< 0.0001" : p.toFixed(4);
}

export function percent(share) {
  return share === null || share === undefined ? DASH : `${Math.round(share * 100)}%`;
}

export function count(number) {
  return number.toLocaleString("en");
}

export function way(gain) {
  return gain > 0 ? "gain" : gain < 0 ? "loss" : "same";
}

// Terminal escapes and other control characters have no shape: they are shown as a mark, as the terminal shows them.
export function visible(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
