// @ts-check
// The phase plane: the trajectory, surfaces by what the flow does there, where gaps forbid to be; the start to drag.

import { COLOURS, Frame, curveWidth, extent, ink, mark, padded, prepare, short, shownEvents, valueAt } from './plot.js';
import { element, isState, make, state, tell } from './state.js';

const canvas = element('plane');
/** @type {Record<string, { colour: string, width: number, dash: number[], word: string }>} */
const LOOKS = {
  attracting: { colour: '#e8871e', width: 5, dash: [], word: 'attracting sliding' },
  repelling: { colour: '#8e5bd0', width: 5, dash: [], word: 'repelling' },
  crossing: { colour: '#8a9099', width: 1.4, dash: [], word: 'crossing' },
  kink: { colour: '#8a9099', width: 1.4, dash: [2, 3], word: 'kink' },
  gap: { colour: '#7b5ea7', width: 1.8, dash: [], word: 'contact' },
  section: { colour: '#009e73', width: 1.4, dash: [7, 4], word: 'section' },
};

/** The box shown: chosen by hand, or one that fits the run. @type {number[] | null} */
let chosen = null;
/** @type {number[] | null} */
let fitted = null;
/** @type {Frame | null} */
let frame = null;
/** The last answer about surfaces. @type {any} */
let surfaces = null;
/** Curves kept for comparison. @type {{ x: string, y: string, xs: ArrayLike<number>, ys: ArrayLike<number> }[]} */
let kept = [];
let hand = '';
/** @type {number[]} */
let grip = [];

export function reset() {
  chosen = fitted = surfaces = null;
  kept = [];
  element('clear-kept').hidden = true;
}

/** For tests: where a point of the plane is drawn. @param {number} x @param {number} y */
export function pixel(x, y) { return frame ? [frame.px(x), frame.py(y)] : null; }

function box() {
  const run = state.run, { x, y } = state.axes;
  const [x0, x1] = extent(run.arrays[x]), [y0, y1] = extent(run.arrays[y]);
  if (!run.drag || !fitted) fitted = [...padded(x0, x1, 0.12), ...padded(y0, y1, 0.12)];
  else fitted = [Math.min(fitted[0], x0), Math.max(fitted[1], x1), Math.min(fitted[2], y0), Math.max(fitted[3], y1)];
  return chosen ?? fitted;
}

/** Asks for the surfaces of what is shown; null where there are none. */
export function question() {
  const run = state.run, { x, y } = state.axes;
  if (!run || !frame || !isState(x) || !isState(y) || x === y) return null;
  const field = element('field').checked;
  if (!field && !state.model.switches.length && !state.model.constraints.length && !state.model.sections.length) return null;
  const at = state.model.states.map((/** @type {any} */ s) => valueAt(run, s.name, state.cursor));
  if (at.some((/** @type {number} */ v) => !Number.isFinite(v))) return null;
  return { do: 'plane', axes: [x, y], box: [...frame.xs, ...frame.ys], t: state.cursor, state: at, p: state.p, x: state.x, ...(field ? { field } : {}) };
}

/** For tests: how many points the field has. */
export const fieldPoints = () => (surfaces?.arrays.field?.length ?? 0) / 4;

/** For tests: the time at which surfaces are drawn. */
export const surfaceTime = () => surfaces?.t;

/** @param {any} answer */
export function setSurfaces(answer) { surfaces = answer; }

/** @param {any} ctx @param {Frame} f */
function paintSurfaces(ctx, f) {
  if (!surfaces || surfaces.axes[0] !== state.axes.x || surfaces.axes[1] !== state.axes.y) return;
  paintForbidden(ctx, f);
  const ends = surfaces.arrays.ends;
  let at = 0;
  for (const { kind, count } of surfaces.lines) {
    const look = LOOKS[kind];
    ctx.strokeStyle = look.colour;
    ctx.lineWidth = look.width;
    ctx.setLineDash(look.dash);
    ctx.lineCap = 'butt';
    ctx.beginPath();
    for (let k = 0; k < count; k++, at += 4) {
      ctx.moveTo(f.px(ends[at]), f.py(ends[at + 1]));
      ctx.lineTo(f.px(ends[at + 2]), f.py(ends[at + 3]));
    }
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

/** Where states go from the points of a grid: short lines away from dots, as long as a cell at most. @param {any} ctx @param {Frame} f */
function paintField(ctx, f) {
  const field = surfaces?.arrays.field;
  if (!field || !element('field').checked || surfaces.axes[0] !== state.axes.x || surfaces.axes[1] !== state.axes.y) return;
  const sx = f.place.w / (f.xs[1] - f.xs[0]), sy = f.place.h / (f.ys[1] - f.ys[0]), cell = 0.8 * Math.min(f.place.w, f.place.h) / Math.sqrt(field.length / 4);
  let fastest = 0;
  for (let k = 0; k < field.length; k += 4) fastest = Math.max(fastest, Math.hypot(field[k + 2] * sx, field[k + 3] * sy) || 0);
  ctx.strokeStyle = ctx.fillStyle = ink().soft;
  ctx.globalAlpha = 0.7;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let k = 0; k < field.length; k += 4) {
    const x = f.px(field[k]), y = f.py(field[k + 1]), u = field[k + 2] * sx, v = -field[k + 3] * sy, speed = Math.hypot(u, v);
    if (!(speed > 0 && speed < Infinity)) continue;
    const long = cell * Math.sqrt(speed / fastest) / speed;
    ctx.fillRect(x - 1, y - 1, 2, 2);
    ctx.moveTo(x, y);
    ctx.lineTo(x + u * long, y + v * long);
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** Hatching where a gap is negative. @param {any} ctx @param {Frame} f */
function paintForbidden(ctx, f) {
  const mask = surfaces.arrays.forbidden, n = surfaces.cells, [x0, x1, y0, y1] = surfaces.box;
  if (!mask.length) return;
  const w = (f.px(x1) - f.px(x0)) / n, h = (f.py(y0) - f.py(y1)) / n;
  ctx.strokeStyle = LOOKS.gap.colour;
  ctx.globalAlpha = 0.35;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let j = 0; j < n; j++) {
    for (let i = 0; i < n; i++) {
      const k = j * (n + 1) + i;
      if (!(mask[k] && mask[k + 1] && mask[k + n + 1] && mask[k + n + 2]) || (i - j) % 3) continue;
      const px = f.px(x0) + i * w, py = f.py(y0) - j * h;
      ctx.moveTo(px, py);
      ctx.lineTo(px + w, py - h);
    }
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** @param {any} ctx @param {number} width @param {number} height */
export function paint(ctx, width, height) {
  const run = state.run, { x, y } = state.axes, colours = ink();
  const [x0, x1, y0, y1] = box();
  const f = frame = new Frame({ x: 58, y: 8, w: width - 58 - 12, h: height - 8 - 36 }, [x0, x1], [y0, y1]);
  f.draw(ctx, { x, y });
  f.clipped(ctx, () => {
    paintField(ctx, f);
    paintSurfaces(ctx, f);
    ctx.strokeStyle = colours.soft;
    ctx.lineWidth = 1;
    ctx.globalAlpha = 0.6;
    for (const k of kept) if (k.x === x && k.y === y) f.curve(ctx, k.xs, k.ys);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = COLOURS[0];
    ctx.lineWidth = curveWidth(run);
    f.curve(ctx, run.arrays[x], run.arrays[y]);
    paintMarks(ctx, f);
    const place = (/** @type {string} */ name) => valueAt(run, name, state.cursor);
    ctx.fillStyle = colours.ink;
    ctx.beginPath();
    ctx.arc(f.px(place(x)), f.py(place(y)), 4.5, 0, 2 * Math.PI);
    ctx.fill();
    if (!isState(x) || !isState(y)) return;
    const [sx, sy] = startPixels(f);
    ctx.strokeStyle = colours.start;
    ctx.lineWidth = 2.5;
    ctx.beginPath();
    ctx.arc(sx, sy, 7, 0, 2 * Math.PI);
    ctx.stroke();
  });
}

/** @param {any} ctx @param {Frame} f */
function paintMarks(ctx, f) {
  const run = state.run, i = run.columns.indexOf(state.axes.x) - 1, j = run.columns.indexOf(state.axes.y) - 1;
  if (i >= run.states || j >= run.states || i < 0 || j < 0) return;
  const states = run.arrays['event.state'];
  for (const k of shownEvents(run)) mark(ctx, f.px(states[k * run.states + i]), f.py(states[k * run.states + j]), run.events[k][1]);
}

/** @param {Frame} f */
function startPixels(f) {
  const { x, y } = state.axes, of = (/** @type {string} */ n) => state.run.start[state.run.columns.indexOf(n) - 1];
  return [f.px(of(x)), f.py(of(y))];
}

export function draw() {
  const { ctx, width, height } = prepare(canvas);
  if (state.run && state.run.arrays[state.axes.x] && state.run.arrays[state.axes.y]) paint(ctx, width, height);
}

/** In words, what the colours mean and what is held. */
export function drawCaption() {
  const parts = [];
  const kinds = new Set((surfaces?.lines ?? []).map((/** @type {any} */ l) => l.kind));
  for (const kind of kinds) {
    const swatch = make('span', { className: 'swatch' });
    swatch.style.background = LOOKS[kind].colour;
    parts.push(make('span', {}, swatch, LOOKS[kind].word + '  '));
  }
  const others = state.model.states.map((/** @type {any} */ s) => s.name).filter((/** @type {string} */ n) => n !== state.axes.x && n !== state.axes.y);
  if (kinds.size) {
    const held = others.slice(0, 4).map((/** @type {string} */ n) => `${n} = ${short(valueAt(state.run, n, state.cursor), 3)}`).join(', ');
    parts.push(`at t = ${short(state.cursor, 5)}${held ? `, ${held}${others.length > 4 ? ', …' : ''}` : ''}`);
  }
  element('plane-caption').replaceChildren(...parts);
}

export function fillAxes() {
  const columns = state.run?.columns ?? state.model.columns;
  for (const [id, key, fallback] of /** @type {const} */ ([['plane-x', 'x', 1], ['plane-y', 'y', 2]])) {
    const select = element(id);
    const usual = state.model.states.length === 1 ? fallback - 1 : fallback;  // one state is shown over time
    if (!columns.includes(state.axes[key])) state.axes[key] = columns[usual];
    if (select.dataset.of !== columns.join()) {
      select.replaceChildren(...columns.map((/** @type {string} */ c) => make('option', {}, c)));
      select.dataset.of = columns.join();
    }
    select.value = state.axes[key];
  }
}

// ---- hands ----------------------------------------------------------------------------------------------------------

for (const [id, key] of /** @type {const} */ ([['plane-x', 'x'], ['plane-y', 'y']])) {
  element(id).addEventListener('change', () => {
    state.axes[key] = element(id).value;
    chosen = fitted = null;
    tell('axes');
  });
}
element('field').addEventListener('change', () => tell('box'));
element('clear-kept').addEventListener('click', () => { kept = []; element('clear-kept').hidden = true; tell('draw'); });

/** @param {PointerEvent} event @param {boolean} drag */
function startAt(event, drag) {
  if (!frame) return;
  const digits = (/** @type {number[]} */ range) => Math.max(0, Math.ceil(-Math.log10((range[1] - range[0]) / 2000)));
  state.x[state.axes.x] = String(Number(frame.x(event.offsetX).toFixed(digits(frame.xs))));
  state.x[state.axes.y] = String(Number(frame.y(event.offsetY).toFixed(digits(frame.ys))));
  tell('start', { drag });
}

/** @param {PointerEvent} event */
function nearestTime(event) {
  const run = state.run, xs = run.arrays[state.axes.x], ys = run.arrays[state.axes.y];
  let best = Infinity, t = state.cursor;
  for (let i = 0; i < xs.length && frame; i++) {
    const d = (frame.px(xs[i]) - event.offsetX) ** 2 + (frame.py(ys[i]) - event.offsetY) ** 2;
    if (d < best) [best, t] = [d, run.arrays.t[i]];
  }
  return t;
}

canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
  if (!state.run || !frame?.holds(event.offsetX, event.offsetY)) return;
  canvas.setPointerCapture(event.pointerId);
  if (event.ctrlKey || event.metaKey) { tell('cursor', nearestTime(event)); return; }
  if (event.shiftKey || event.button === 1) { hand = 'pan'; grip = [event.offsetX, event.offsetY, ...frame.xs, ...frame.ys]; return; }
  if (!isState(state.axes.x) || !isState(state.axes.y)) return;
  if (event.altKey) {
    const { x, y } = state.axes;
    kept.push({ x, y, xs: state.run.arrays[x], ys: state.run.arrays[y] });
    element('clear-kept').hidden = false;
  }
  hand = 'start';
  chosen = [...frame.xs, ...frame.ys];  // the box stays under the hand
  startAt(event, true);
});
canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
  if (hand === 'start') startAt(event, true);
  if (hand === 'pan' && frame) {
    const [px, py, x0, x1, y0, y1] = grip;
    const dx = (px - event.offsetX) / frame.place.w * (x1 - x0), dy = (event.offsetY - py) / frame.place.h * (y1 - y0);
    chosen = [x0 + dx, x1 + dx, y0 + dy, y1 + dy];
    tell('box');
  }
});
canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
  if (hand === 'start') startAt(event, false);
  hand = '';
});
canvas.addEventListener('dblclick', () => { chosen = fitted = null; tell('box'); });
canvas.addEventListener('wheel', (/** @type {WheelEvent} */ event) => {
  if (!frame) return;
  event.preventDefault();
  const x = frame.x(event.offsetX), y = frame.y(event.offsetY), k = 1.0015 ** event.deltaY;
  const [x0, x1] = frame.xs, [y0, y1] = frame.ys;
  chosen = [x + (x0 - x) * k, x + (x1 - x) * k, y + (y0 - y) * k, y + (y1 - y) * k];
  tell('box');
}, { passive: false });
canvas.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
  const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!move || !frame || !isState(state.axes.x) || !isState(state.axes.y)) return;
  event.preventDefault();
  const [sx, sy] = startPixels(frame), step = event.shiftKey ? 1 : 5;
  const there = /** @type {any} */ ({ offsetX: sx + step * move[0], offsetY: sy - step * move[1] });
  chosen = [...frame.xs, ...frame.ys];
  startAt(there, true);
});
