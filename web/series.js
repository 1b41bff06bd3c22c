// @ts-check
// Quantities over time, one panel per group of kin, the modes below; cursors, zoom.

import { setEnd } from './controls.js';
import { COLOURS, Frame, MODE_COLOURS, curveWidth, extent, ink, mark, padded, prepare, rowAt, short, shownEvents, valueAt } from './plot.js';
import { element, make, state, tell } from './state.js';

const canvas = element('series');
/** What is shown of time: all of it, or a part. @type {number[] | null} */
let zoom = null;
/** @type {Set<string>} */
let hidden = new Set();
/** @type {Set<string>} */
let extra = new Set();
/** Names of columns that share a panel. @type {string[][]} */
let panels = [];
/** @type {Frame[]} */
let frames = [];
/** Rows of the part of time that is shown, where the run has been seen more closely. @type {any} */
let close = null;
/** While a part of time is being chosen. @type {number[] | null} */
let rubber = null;

function colourOf(/** @type {string} */ name) {
  return COLOURS[(state.run.columns.indexOf(name) - 1 + COLOURS.length) % COLOURS.length];
}

/** What to ask for to see the part shown more closely, or nothing. */
export function closer() {
  return zoom && state.run && !state.run.drag && (close?.run !== state.run || close.zoom !== zoom) ? { window: zoom, zoom } : null;
}

/** @param {any} answer @param {number[]} of */
export function setClose(answer, of) {
  const { t } = answer.arrays, run = state.run, n = run.states, after = run.arrays['event.state'], before = run.arrays['event.before'];
  for (let i = 0; i < run.events.length; i++) {  // curves are interrupted where states jump
    if (!run.columns.slice(1, 1 + n).some((/** @type {string} */ _, /** @type {number} */ s) => after[i * n + s] !== before[i * n + s])) continue;
    const k = rowAt(t, run.events[i][0], run.until < run.from ? -1 : 1);
    if (k > 0 && k < t.length - 1) for (const name of run.columns.slice(1)) answer.arrays[name][k] = NaN;
  }
  close = { run, zoom: of, arrays: answer.arrays };
}

/** For tests: where the middle of a stretch of time lies in a row of the ribbon. @param {number} from @param {number} to @param {number} row */
export function ribbonPixel(from, to, row) {
  const f = frames[0], last = frames[frames.length - 1].place;
  return f ? [(f.px(from) + f.px(to)) / 2, last.y + last.h + 10 + row * 19 + 2, Math.abs(f.px(to) - f.px(from))] : null;
}

/** For tests: how many rows are drawn closely. */
export const closeRows = () => (zoom && close?.zoom === zoom ? close.arrays.t.length : 0);

export function reset() {
  zoom = null;
  close = null;
  hidden = new Set();
  extra = new Set();
  panels = [];
}

/** Groups come with runs at rest; a drag keeps them. */
function currentPanels() {
  const run = state.run;
  if (run.panels) panels = run.panels;
  if (!panels.length || panels.flat().some((name) => !run.arrays[name])) panels = run.columns.slice(1, 1 + Math.min(run.states, 6)).map((/** @type {string} */ c) => [c]);
  const shown = panels.map((group) => group.filter((name) => !hidden.has(name))).filter((group) => group.length);
  for (const name of extra) shown.push([name]);
  return shown;
}

/** Ribbons: a row per switch and constraint, or one of whole modes where there are many. */
function ribbonRows() {
  const names = [...state.model.switches, ...state.model.constraints], run = state.run;
  const letters = run.modes.map((/** @type {string} */ m) => m.replace('|', ''));
  if (names.length === 0 || letters.some((/** @type {string} */ m) => m.length !== names.length)) return [];
  if (names.length > 8) return [{ label: 'mode', letter: (/** @type {number} */ mode) => run.modes[mode] }];
  return names.map((name, i) => ({ label: name, letter: (/** @type {number} */ mode) => letters[mode][i] }));
}

const HUES = ['#9ecae1', '#fdbe85', '#a1d99b', '#bcbddc', '#f2b6c6', '#d9c99a', '#9fd6d2', '#c7c7c7'];
/** @param {string} letter */
const ribbonColour = (letter) => MODE_COLOURS[letter] ?? HUES[[...letter].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 997, 7) % HUES.length];
/** @param {string} label @param {string} letter */
function ribbonWord(label, letter) {
  const relation = { '+': ' > 0', '-': ' < 0', 0: ' = 0', c: ' closed', o: ' open', '~': ' slips', '^': ' slips' }[letter];
  return relation ? label + relation : letter;
}

export function timeRange() {
  const run = state.run;
  return zoom ?? [Math.min(run.from, run.until), Math.max(run.from, run.until)];
}

/** @param {any} ctx @param {number} width @param {number} height */
export function paint(ctx, width, height) {
  const run = state.run, shown = currentPanels(), ribbons = ribbonRows(), colours = ink();
  const left = 58, right = 12, ribbonHeight = ribbons.length ? ribbons.length * 19 + 6 : 0, axis = 34;
  const each = Math.max(24, (height - 8 - ribbonHeight - axis) / Math.max(1, shown.length));
  const times = timeRange();
  frames = [];
  const arrays = close?.run === run && close.zoom === zoom && zoom ? close.arrays : run.arrays;
  const marks = shownEvents(run), ts = arrays.t;
  const backward = run.until < run.from;
  const first = Math.max(0, rowAt(ts, backward ? times[1] : times[0], backward ? -1 : 1) - 1);
  const last = Math.min(ts.length, rowAt(ts, backward ? times[0] : times[1], backward ? -1 : 1) + 3);
  shown.forEach((names, k) => {
    const place = { x: left, y: 8 + k * each, w: width - left - right, h: each - 10 };
    let low = Infinity, high = -Infinity;
    for (const name of names) {
      const [a, b] = extent(zoom ? arrays[name].subarray(first, last) : arrays[name]);
      low = Math.min(low, a);
      high = Math.max(high, b);
    }
    const frame = new Frame(place, times, padded(low, high));
    frames.push(frame);
    const end = k === shown.length - 1 && !ribbons.length;
    frame.draw(ctx, { y: names.length <= 4 ? names.join(', ') : `${names[0]} … ${names[names.length - 1]}`, numbersX: end, x: end ? 't' : '' });
    frame.clipped(ctx, () => {
      for (const name of names) {
        ctx.strokeStyle = colourOf(name);
        ctx.lineWidth = curveWidth(run);
        frame.curve(ctx, ts, arrays[name], first, last);
      }
      for (const name of names) {
        const s = run.columns.indexOf(name) - 1;
        if (s >= run.states || marks.length * names.length > 400) continue;
        for (const i of marks) {
          const t = run.events[i][0];
          if (t < times[0] || t > times[1]) continue;
          mark(ctx, frame.px(t), frame.py(run.arrays['event.state'][i * run.states + s]), run.events[i][1]);
        }
      }
    });
  });
  if (run.late) paintMissing(ctx, colours, { x: left, y: 8, w: width - left - right, h: shown.length * each - 10 }, times);
  if (ribbons.length) paintRibbons(ctx, ribbons, { x: left, y: 8 + shown.length * each, w: width - left - right, h: 0 }, times, colours);
  paintCursors(ctx, colours, { x: left, y: 4, w: width - left - right, h: height - axis - 2 }, times);
}

/**
 * @param {any} ctx @param {any[]} ribbons @param {{x: number, y: number, w: number, h: number}} place
 * @param {number[]} times @param {any} colours
 */
function paintRibbons(ctx, ribbons, place, times, colours) {
  const run = state.run, from = run.arrays['stay.from'], to = run.arrays['stay.to'], mode = run.arrays['stay.mode'];
  const frame = new Frame({ ...place, h: ribbons.length * 19 - 3 }, times, [0, 1]);
  frame.draw(ctx, { x: 't', numbersY: false });
  ribbons.forEach(({ label, letter }, row) => {
    const y = place.y + row * 19, h = 16;
    ctx.fillStyle = colours.paper;
    ctx.fillRect(0, y, place.x - 2, h);
    frame.clipped(ctx, () => {
      let open = -1;
      for (let i = 0; i <= mode.length; i++) {
        const same = open >= 0 && i < mode.length && letter(mode[i]) === letter(mode[open]);
        if (same) continue;
        if (open >= 0) {
          const a = frame.px(Math.min(from[open], to[i - 1])), b = frame.px(Math.max(from[open], to[i - 1]));
          const word = letter(mode[open]);
          ctx.fillStyle = ribbonColour(word);
          ctx.fillRect(a, y, Math.max(b - a, 0.6), h);
          const visible = Math.min(b, place.x + place.w) - Math.max(a, place.x), text = ribbonWord(label, word);
          ctx.fillStyle = '#1b1b1b';
          ctx.textAlign = 'center';
          ctx.textBaseline = 'middle';
          const at = (Math.min(b, place.x + place.w) + Math.max(a, place.x)) / 2;
          if (visible > ctx.measureText(text).width + 8) ctx.fillText(text, at, y + h / 2 + 1);
          else if (visible > 12 && word.length === 1) ctx.fillText(word === '-' ? '−' : word, at, y + h / 2 + 1);
        }
        open = i;
      }
    });
    ctx.fillStyle = colours.soft;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    ctx.fillText(label.length > 7 ? label.slice(0, 6) + '…' : label, place.x - 6, y + h / 2);
  });
}

/** What a cut run has not reached. @param {any} ctx @param {any} colours @param {{x: number, y: number, w: number, h: number}} place @param {number[]} times */
function paintMissing(ctx, colours, place, times) {
  const frame = new Frame(place, times, [0, 1]);
  frame.clipped(ctx, () => {
    const a = frame.px(state.run.end.t), b = frame.px(state.run.until);
    ctx.fillStyle = colours.soft;
    ctx.globalAlpha = 0.12;
    ctx.fillRect(Math.min(a, b), place.y, Math.abs(b - a), place.h);
    ctx.globalAlpha = 1;
  });
}

/** @param {any} ctx @param {any} colours @param {{x: number, y: number, w: number, h: number}} place @param {number[]} times */
function paintCursors(ctx, colours, place, times) {
  const frame = new Frame(place, times, [0, 1]);
  const line = (/** @type {number} */ t, /** @type {number[]} */ dash) => {
    if (!(t >= times[0] && t <= times[1])) return;
    ctx.strokeStyle = colours.ink;
    ctx.globalAlpha = 0.6;
    ctx.lineWidth = 1;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(frame.px(t), place.y);
    ctx.lineTo(frame.px(t), place.y + place.h);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  };
  line(state.cursor, []);
  line(state.second, [4, 3]);
  if (rubber) {
    ctx.fillStyle = colours.blue;
    ctx.globalAlpha = 0.15;
    ctx.fillRect(Math.min(...rubber), place.y, Math.abs(rubber[1] - rubber[0]), place.h);
    ctx.globalAlpha = 1;
  }
}

export function draw() {
  const { ctx, width, height } = prepare(canvas);
  if (state.run) paint(ctx, width, height);
}

/** Names to switch on and off, with their values at the cursor. */
export function drawLegend() {
  currentPanels();
  const run = state.run, base = new Set(panels.flat());
  const all = run.columns.slice(1, 25);
  const labels = all.map((/** @type {string} */ name) => {
    const on = base.has(name) ? !hidden.has(name) : extra.has(name);
    const box = make('input', { type: 'checkbox', checked: on, onchange: () => {
      const set = base.has(name) ? hidden : extra;
      if (set.has(name)) set.delete(name); else set.add(name);
      tell('draw');
    } });
    const swatch = make('i', { hidden: !on });
    swatch.style.background = colourOf(name);
    let value = on ? ` = ${short(valueAt(run, name, state.cursor))}` : '';
    if (on && state.second === state.second) value += ` (Δ ${short(valueAt(run, name, state.second) - valueAt(run, name, state.cursor))})`;
    return make('label', { className: on ? '' : 'off' }, box, swatch, `${name}${value}`);
  });
  element('legend').replaceChildren(...labels);
}

// ---- hands ----------------------------------------------------------------------------------------------------------

/** What a hand on the right edge has taken hold of: pixel and time of the edge, pixels per time. @type {number[] | null} */
let edge = null;
/** @param {PointerEvent} event */
const onEdge = (event) => Boolean(frames.length) && !zoom && Math.abs(event.offsetX - frames[0].place.x - frames[0].place.w) < 7;

/** The end of the run follows the hand. @param {PointerEvent} event @param {boolean} drag */
function moveEnd(event, drag) {
  if (!edge) return;
  const [px, t, perTime] = edge, fine = 10 ** Math.floor(Math.log10(4 / perTime));
  const wanted = Math.round((t + (event.offsetX - px) / perTime) / fine) * fine;
  setEnd(Math.max(wanted, state.run.from + fine), drag);
}

/** @param {PointerEvent | WheelEvent | MouseEvent} event */
const timeOf = (event) => frames[0]?.x(event.offsetX);

canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
  if (!state.run || !frames.length) return;
  canvas.setPointerCapture(event.pointerId);
  if (onEdge(event) && state.run.until > state.run.from) {
    const { place } = frames[0];
    edge = [event.offsetX, state.run.until, place.w / (state.run.until - state.run.from)];
    return;
  }
  rubber = [event.offsetX, event.offsetX];
});
canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
  canvas.style.cursor = edge || onEdge(event) ? 'ew-resize' : '';
  if (edge) return moveEnd(event, true);
  if (!rubber) return;
  rubber[1] = event.offsetX;
  tell('draw');
});
canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
  if (edge) { moveEnd(event, false); edge = null; return; }
  if (!rubber) return;
  const [a, b] = rubber.map((px) => frames[0].x(px)).sort((u, v) => u - v), moved = Math.abs(rubber[1] - rubber[0]);
  rubber = null;
  if (moved > 6) { zoom = clampTimes([a, b]); tell('draw'); return; }
  if (event.shiftKey) { state.second = state.second === state.second ? NaN : timeOf(event); tell('cursor'); return; }
  tell('cursor', timeOf(event));
});
canvas.addEventListener('dblclick', () => { zoom = null; tell('draw'); });
canvas.addEventListener('wheel', (/** @type {WheelEvent} */ event) => {
  if (!state.run || !frames.length) return;
  event.preventDefault();
  const t = timeOf(event), factor = 1.0015 ** event.deltaY, [a, b] = timeRange();
  zoom = clampTimes([t + (a - t) * factor, t + (b - t) * factor]);
  tell('draw');
}, { passive: false });
canvas.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
  const sign = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!sign || !state.run) return;
  event.preventDefault();
  const [a, b] = timeRange();
  tell('cursor', state.cursor + sign * (b - a) / (event.shiftKey ? 2000 : 200));
});

/** @param {number[]} times @returns {number[] | null} */
function clampTimes([a, b]) {
  const run = state.run, low = Math.min(run.from, run.until), high = Math.max(run.from, run.until);
  a = Math.max(a, low);
  b = Math.min(b, high);
  return a <= low && b >= high || !(b > a) ? null : [a, b];
}
