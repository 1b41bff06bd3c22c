// @ts-check
// What all pictures share: axes, ticks, colours, marks. Everything draws on a context, of a canvas or of svg.js.

import { dark } from './state.js';

/** The width of curves; under the hand a single pixel, which is drawn several times faster. @param {any} run */
export const curveWidth = (run) => (run.drag ? 1 : 1.4);

/** Okabe-Ito, those that stand out on white and on black. */
export const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8a6d00', '#7b5ea7', '#5f6b73', '#a0522d'];

/** The k-th of arbitrarily many: those that come round again are lighter. @param {number} k */
export function hue(k) {
  const lighter = Math.floor(k / COLOURS.length) % 3 * 0.35, n = parseInt(COLOURS[k % COLOURS.length].slice(1), 16);
  const part = (/** @type {number} */ shift) => Math.round((n >> shift & 255) + (255 - (n >> shift & 255)) * lighter);
  return `#${(part(16) << 16 | part(8) << 8 | part(0)).toString(16).padStart(6, '0')}`;
}

/** Colours of things as the pixels of an ImageData, each looked up once. @template T @param {(of: T) => string} colour @returns {(of: T) => number} */
export function packing(colour) {
  /** @type {Map<T, number>} */
  const known = new Map();
  return (of) => {
    let pixel = known.get(of);
    if (pixel === undefined) {
      const n = parseInt(colour(of).slice(1), 16);
      known.set(of, pixel = (0xff000000 | (n & 255) << 16 | (n >> 8 & 255) << 8 | n >> 16) >>> 0);
    }
    return pixel;
  };
}

/** The colours of the ribbon, as in plot.svg. @type {Record<string, string>} */
export const MODE_COLOURS = { '+': '#9ecae1', '-': '#fdbe85', 0: '#a1d99b', c: '#bcbddc', o: '#e3e3ea', '~': '#9ecae1', '^': '#9ecae1' };

/** @type {Record<string, { colour: string, shape: string }>} */
export const KINDS = {
  cross: { colour: '#5f6b73', shape: 'x' }, slide: { colour: '#d55e00', shape: 'disc' }, leave: { colour: '#d55e00', shape: 'ring' },
  graze: { colour: '#cc79a7', shape: 'ring' }, impact: { colour: '#0072b2', shape: 'triangle' }, close: { colour: '#7b5ea7', shape: 'disc' },
  open: { colour: '#7b5ea7', shape: 'ring' }, chatter: { colour: '#b3261e', shape: 'disc' }, jump: { colour: '#009e73', shape: 'triangle' },
  section: { colour: '#1b1b1b', shape: 'dot' }, mode: { colour: '#e69f00', shape: 'x' },
};

/** @type {any} */
let page = null;
dark.addEventListener('change', () => { page = null; });

/** Colours of the page, which follow light and dark. */
export function ink() {
  page ??= readColours();
  return page;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { ink: of('--ink'), soft: of('--soft'), grid: of('--grid'), line: of('--line'), paper: of('--paper'), blue: of('--blue'), start: of('--start') };
}

/** The context of a canvas, sized to its place on the screen. @param {HTMLCanvasElement} canvas */
export function prepare(canvas) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return { ctx, width, height };
}

/** Round numbers in a range. @param {number} from @param {number} to @param {number} most */
export function ticks(from, to, most) {
  const raw = (to - from) / Math.max(1, most);
  if (!(raw > 0) || !Number.isFinite(raw)) return { step: 1, at: [] };
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 10 * power;
  const at = [];
  for (let k = Math.ceil(from / step - 1e-9); k <= to / step + 1e-9 && at.length < 50; k++) at.push(k * step);
  return { step, at };
}

/** @param {number} value @param {number} step */
export function tickText(value, step) {
  if (Math.abs(value) < step * 1e-6) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || step < 1e-4) return value.toExponential(Math.max(0, Math.min(6, Math.floor(Math.log10(size)) - Math.floor(Math.log10(step))))).replace('e+', 'e').replace('-', '−').replace('e-', 'e−');
  return value.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))).replace('-', '−');
}

/** @param {number} value @param {number} [digits] */
export function short(value, digits = 6) {
  if (!Number.isFinite(value)) return '–';
  return String(Number(value.toPrecision(digits)));
}

/** A range that shows all of it, with some air. @param {number} low @param {number} high */
export function padded(low, high, share = 0.06) {
  if (!(high >= low)) return [-1, 1];
  const size = high - low;
  const air = size > 1e-12 * Math.max(Math.abs(low), Math.abs(high)) ? size * share : Math.max(Math.abs(low) * 0.1, 1e-3);
  return [low - air, high + air];
}

/** @param {ArrayLike<number>} column */
export function extent(column) {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < column.length; i++) {
    const v = column[i];
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return [low, high];
}

/** A frame on the screen with a range on both axes. */
export class Frame {
  /**
   * @param {{x: number, y: number, w: number, h: number}} place
   * @param {number[]} xs @param {number[]} ys
   */
  constructor(place, xs, ys) {
    this.place = place;
    this.xs = xs;
    this.ys = ys;
  }
  /** @param {number} x */
  px(x) { return this.place.x + (x - this.xs[0]) / (this.xs[1] - this.xs[0]) * this.place.w; }
  /** @param {number} y */
  py(y) { return this.place.y + this.place.h - (y - this.ys[0]) / (this.ys[1] - this.ys[0]) * this.place.h; }
  /** @param {number} px */
  x(px) { return this.xs[0] + (px - this.place.x) / this.place.w * (this.xs[1] - this.xs[0]); }
  /** @param {number} py */
  y(py) { return this.ys[0] + (this.place.y + this.place.h - py) / this.place.h * (this.ys[1] - this.ys[0]); }
  /** @param {number} px @param {number} py */
  holds(px, py) {
    const { x, y, w, h } = this.place;
    return px >= x && px <= x + w && py >= y && py <= y + h;
  }

  /**
   * Grid, numbers, frame.
   * @param {any} ctx
   * @param {{x?: string, y?: string, numbersX?: boolean, numbersY?: boolean, grid?: boolean}} labels
   */
  draw(ctx, { x: labelX = '', y: labelY = '', numbersX = true, numbersY = true, grid = true } = {}) {
    const { x, y, w, h } = this.place, colours = ink();
    ctx.font = '11px system-ui, "DejaVu Sans", sans-serif';
    ctx.lineWidth = 1;
    const tx = ticks(this.xs[0], this.xs[1], w / 70), ty = ticks(this.ys[0], this.ys[1], h / 36);
    ctx.strokeStyle = colours.grid;
    ctx.beginPath();
    if (grid) for (const v of tx.at) { ctx.moveTo(this.px(v), y); ctx.lineTo(this.px(v), y + h); }
    if (grid && numbersY) for (const v of ty.at) { ctx.moveTo(x, this.py(v)); ctx.lineTo(x + w, this.py(v)); }
    ctx.stroke();
    ctx.strokeStyle = colours.line;
    ctx.strokeRect(x, y, w, h);
    ctx.fillStyle = colours.soft;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'right';
    if (numbersY) for (const v of ty.at) ctx.fillText(tickText(v, ty.step), x - 6, this.py(v));
    ctx.textAlign = 'center';
    ctx.textBaseline = 'top';
    if (numbersX) for (const v of tx.at) ctx.fillText(tickText(v, tx.step), this.px(v), y + h + 5);
    ctx.fillStyle = colours.ink;
    ctx.font = '13px system-ui, "DejaVu Sans", sans-serif';
    if (labelX) ctx.fillText(labelX, x + w / 2, y + h + 18);
    if (labelY && labelY.length <= 2) {
      ctx.textAlign = 'left';
      ctx.textBaseline = 'middle';
      ctx.fillText(labelY, 4, y + h / 2);
    } else if (labelY) {
      ctx.save();
      ctx.translate(11, y + h / 2);
      ctx.rotate(-Math.PI / 2);
      ctx.fillText(labelY, 0, -6);
      ctx.restore();
    }
    ctx.font = '11px system-ui, "DejaVu Sans", sans-serif';
  }

  /** @param {any} ctx @param {() => void} paint */
  clipped(ctx, paint) {
    const { x, y, w, h } = this.place;
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, w, h);
    ctx.clip();
    paint();
    ctx.restore();
  }

  /**
   * A curve in row order, interrupted by NaN; points that cannot be told from the last are left out.
   * @param {any} ctx @param {ArrayLike<number>} xs @param {ArrayLike<number>} ys
   * @param {number} [from] @param {number} [to]
   */
  curve(ctx, xs, ys, from = 0, to = xs.length) {
    ctx.beginPath();
    let down = false, lx = 0, ly = 0;
    for (let i = from; i < to; i++) {
      let px = this.px(xs[i]), py = this.py(ys[i]);
      if (!(px === px && py === py)) { down = false; continue; }
      px = Math.max(-1e5, Math.min(1e5, px));
      py = Math.max(-1e5, Math.min(1e5, py));
      if (!down) ctx.moveTo(px, py);
      else if (Math.abs(px - lx) + Math.abs(py - ly) < 0.4 && i + 1 < to && xs[i + 1] === xs[i + 1]) continue;
      else ctx.lineTo(px, py);
      down = true;
      lx = px;
      ly = py;
    }
    ctx.stroke();
  }
}

/** Of an event; in a file it can be told by its class. @param {any} ctx @param {number} x @param {number} y @param {string} kind */
export function mark(ctx, x, y, kind) {
  if (ctx.marked) ctx.marked(kind, () => paintMark(ctx, x, y, kind));
  else paintMark(ctx, x, y, kind);
}

/** @param {any} ctx @param {number} x @param {number} y @param {string} kind */
function paintMark(ctx, x, y, kind) {
  const { shape, colour } = KINDS[kind] ?? { shape: 'x', colour: '#7b5ea7' };
  const colours = ink(), own = kind === 'section' ? colours.ink : colour;
  ctx.strokeStyle = own;
  ctx.fillStyle = shape === 'ring' ? colours.paper : own;
  ctx.lineWidth = 1.4;
  ctx.beginPath();
  if (shape === 'x') {
    ctx.moveTo(x - 3, y - 3); ctx.lineTo(x + 3, y + 3);
    ctx.moveTo(x - 3, y + 3); ctx.lineTo(x + 3, y - 3);
    ctx.stroke();
    return;
  }
  if (shape === 'triangle') {
    ctx.moveTo(x, y - 4); ctx.lineTo(x + 4, y + 3); ctx.lineTo(x - 4, y + 3); ctx.closePath();
  } else {
    ctx.arc(x, y, shape === 'dot' ? 2.2 : 3.2, 0, 2 * Math.PI);
  }
  ctx.fill();
  if (shape !== 'dot') ctx.stroke();
}

/** Events worth a mark: where they would cover the curves, the least telling kinds are left out. @param {any} run */
export function shownEvents(run) {
  let kept = run.events.map((/** @type {any} */ _, /** @type {number} */ i) => i);
  for (const kind of ['section', 'graze', 'cross']) {
    if (kept.length <= 120) break;
    kept = kept.filter((/** @type {number} */ i) => run.events[i][1] !== kind);
  }
  return kept.length > 400 ? [] : kept;
}

/** The last row at or before a time. @param {ArrayLike<number>} ts @param {number} t @param {number} direction */
export function rowAt(ts, t, direction = 1) {
  let low = 0, high = ts.length - 1;
  const value = (/** @type {number} */ i) => {
    while (i > 0 && ts[i] !== ts[i]) i--;
    return ts[i] * direction;
  };
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (value(middle) <= t * direction) low = middle; else high = middle - 1;
  }
  while (low > 0 && ts[low] !== ts[low]) low--;
  return low;
}

/** A column at a time, between rows by a straight line. @param {any} run @param {string} name @param {number} t */
export function valueAt(run, name, t) {
  const ts = run.arrays.t, ys = run.arrays[name];
  if (!ys?.length) return NaN;
  const i = rowAt(ts, t, run.until < run.from ? -1 : 1), j = i + 1;
  if (j >= ts.length || !(ts[j] !== ts[i]) || ts[j] !== ts[j] || ts[i] === t) return ys[i];
  return ys[i] + (ys[j] - ys[i]) * Math.max(0, Math.min(1, (t - ts[i]) / (ts[j] - ts[i])));
}
