// @ts-check
// What the three views of long computations share: a form, Go and Stop, a bar, a canvas with a frame to click and zoom.

import { showOptions } from './controls.js';
import { Frame, ink, packing, prepare, short } from './plot.js';
import { dark, element, make, on, settings, state, tell, toast } from './state.js';

export class JobView {
  /**
   * @param {import('./link.js').Link} link
   * @param {string} name of the tab
   */
  constructor(link, name) {
    this.link = link;
    this.name = name;
    this.id = 0;
    this.done = true;
    /** Boxes to go back to. @type {any[]} */
    this.history = [];
    /** @type {Frame | null} */
    this.frame = null;
    /** @type {number[] | null} */
    this.rubber = null;
    /** The box shown while a hand moves something in it. @type {number[] | null} */
    this.held = null;
    this.open = false;
    this.build();
    on('tab', (tab) => { this.open = tab === name; if (this.open) { this.fill(); this.schedule(); } });
    on('opened', () => { this.stop(); this.clear(); this.history = []; this.fresh = true; if (this.open) this.fill(); });
    on('edited', () => { if (this.open) this.fill(); });
    dark.addEventListener('change', () => { this.recolour(); this.schedule(); });
    this.fresh = true;
  }

  /** The page has turned light or dark. */
  recolour() {}

  build() {
    this.panel = element(`view-${this.name}`);
    this.panel.classList.add('job');
    this.go = make('button', { className: 'go', type: 'submit' }, 'Compute');
    this.halt = make('button', { type: 'button', disabled: true, onclick: () => this.stop() }, 'Stop');
    this.back = make('button', { type: 'button', disabled: true, onclick: () => this.goBack() }, 'Back');
    this.bar = make('progress', { max: 1, value: 0, 'aria-label': 'Progress' });
    this.word = make('span', { className: 'caption', role: 'status' });
    this.form = make('form', {}, ...this.fields(), this.go, this.halt, this.back, this.bar, this.word);
    this.form.addEventListener('submit', (/** @type {Event} */ event) => { event.preventDefault(); this.start(); });
    this.canvas = make('canvas', { role: 'img', tabIndex: 0, id: `${this.name}-canvas`, 'aria-label': `${this.name}: nothing is computed yet` });
    this.list = make('div', { className: 'list' });
    this.panel.replaceChildren(this.form, this.canvas, this.list);
    this.wire();
    new ResizeObserver(() => this.schedule()).observe(this.canvas);
  }

  /** @returns {Node[]} */
  fields() { return []; }
  /** Options of the form that depend on the model. */
  fill() {}
  clear() {}
  /** @returns {any} */
  message() { return null; }
  /** @param {any} _answer */
  receive(_answer) {}
  /** @param {any} _ctx @param {number} _width @param {number} _height */
  paint(_ctx, _width, _height) {}
  /** @param {number} _x @param {number} _y */
  click(_x, _y) {}
  /** @param {number[]} _box */
  zoom(_box) {}
  /** Whether there is something to drag at this place of the canvas. @param {number} _px @param {number} _py */
  grab(_px, _py) { return false; }
  /** @param {number} _px @param {number} _py */
  drag(_px, _py) {}
  /** @param {number} _px @param {number} _py */
  drop(_px, _py) {}
  goBack() {}

  start() {
    const message = this.message();
    if (!message) return;
    this.clear();
    this.began = performance.now();
    this.done = false;
    this.halt.disabled = false;
    this.word.textContent = '';
    this.bar.value = 0;
    this.id = this.link.ask({ ...settings(message.do === 'branch' ? 'follow' : message.do), until: undefined, ...message }, (answer) => this.take(answer));
    this.schedule();
  }

  stop() {
    if (!this.done) this.link.ask({ do: 'stop', of: this.id });
  }

  /** @param {any} answer */
  take(answer) {
    if (answer.id !== this.id) return;
    const seconds = short((performance.now() - (this.began ?? 0)) / 1000, 3);
    if (answer.kind === 'progress') {
      this.bar.value = answer.share ?? (answer.count ? answer.done / answer.count : 0);
      const left = answer.per_second ? `, ${short((answer.count - answer.done) / answer.per_second, 2)} s to go` : '';
      this.word.textContent = answer.count && !answer.what ? `${answer.done} of ${answer.count}${left}` : answer.what ?? '';
    } else if (answer.kind === 'done' || answer.kind === 'error' || answer.kind === 'dropped') {
      this.done = true;
      this.halt.disabled = true;
      this.bar.value = answer.kind === 'done' && answer.ended === 'count' ? 1 : this.bar.value;
      this.word.textContent = answer.kind === 'error' ? `${answer.error.message}${answer.error.hint ? ` – ${answer.error.hint}` : ''}`
        : answer.ended === 'stopped' || answer.kind === 'dropped' ? 'stopped' : `${seconds} s${answer.message ? `: ${answer.message}` : ''}`;
    } else {
      this.receive(answer);
      this.schedule();
    }
  }

  schedule() {
    if (this.scheduled || !this.open) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      const { ctx, width, height } = prepare(this.canvas);
      this.paint(ctx, width, height);
      if (!this.rubber || !this.frame) return;
      const [x0, y0, x1, y1] = this.rubber;
      ctx.strokeStyle = ink().blue;
      ctx.setLineDash([4, 3]);
      ctx.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
      ctx.setLineDash([]);
    });
  }

  wire() {
    const canvas = this.canvas;
    canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ e) => {
      if (!this.frame?.holds(e.offsetX, e.offsetY)) return;
      canvas.setPointerCapture(e.pointerId);
      if (this.grab(e.offsetX, e.offsetY)) return;
      this.rubber = [e.offsetX, e.offsetY, e.offsetX, e.offsetY];
    });
    canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ e) => {
      if (this.held) return this.drag(e.offsetX, e.offsetY);
      if (!this.rubber) return;
      [this.rubber[2], this.rubber[3]] = [e.offsetX, e.offsetY];
      this.schedule();
    });
    canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ e) => {
      if (this.held) return this.drop(e.offsetX, e.offsetY);
      if (!this.rubber || !this.frame) return;
      const [x0, y0, x1, y1] = this.rubber, f = this.frame;
      this.rubber = null;
      if (Math.abs(x1 - x0) > 6 && Math.abs(y1 - y0) > 6) this.zoom([f.x(Math.min(x0, x1)), f.x(Math.max(x0, x1)), f.y(Math.max(y0, y1)), f.y(Math.min(y0, y1))]);
      else this.click(f.x(x1), f.y(y1));
      this.schedule();
    });
  }
}

/** @param {string} text @param {any} input */
export const labelled = (text, input) => make('label', {}, text, input);

/** @param {any} select @param {string[]} names @param {string} [chosen] */
export function setOptions(select, names, chosen) {
  const before = select.value;
  select.replaceChildren(...names.map((n) => make('option', {}, n)));
  select.value = names.includes(before) && !chosen ? before : chosen ?? names[0] ?? '';
}

export const sections = () => state.model.sections;
export const stateNames = () => state.model.states.map((/** @type {any} */ s) => s.name);

/** A model without a section has no map. @param {any} view */
export function needsSection(view) {
  const none = sections().length === 0;
  view.go.disabled = none;
  if (none) view.word.textContent = 'the model has no [section.NAME]: add one, such as every = "2*pi/omega" or on = "x"';
  else if (view.word.textContent.startsWith('the model has no')) view.word.textContent = '';
  return none;
}

/** Back to Run, started there. @param {[string, number][]} p @param {[string, number][]} x */
export function showRun(p, x) {
  for (const [name, value] of p) state.p[name] = String(value);
  for (const [name, value] of x) state.x[name] = String(value);
  const all = [...p, ...x].map(([n, v]) => `${n} = ${short(v)}`);
  toast(`started at ${all.slice(0, 12).join(', ')}${all.length > 12 ? ', …' : ''}`);
  element('tab-run').click();
  tell('start', { drag: false });
}

/** One period of an orbit in Run, or the stay at a point of rest. @param {[string, number][]} p @param {number[]} at @param {number} t @param {number} period */
export function showPeriod(p, at, t, period) {
  Object.assign(state.solve, { from: String(t), ...(period > 0 ? { until: String(t + period) } : {}) });
  showOptions();
  showRun(p, stateNames().map((/** @type {string} */ name, /** @type {number} */ i) => [name, at[i]]));
}

/** Two ends about the present value of a parameter, or those that the text says. @param {string} name @returns {string[]} */
export function proposedRange(name) {
  const p = state.model.parameters.find((/** @type {any} */ q) => q.name === name);
  if (!p) return ['0', '1'];
  const value = Number(state.p[name] ?? p.value), v = Number.isFinite(value) ? value : p.value;
  const said = new RegExp(`^\\s*${name.replace(/[^\p{L}\p{N}_]/gu, '\\$&')}\\s*=.*#\\s*\\[([^,\\]]+),([^\\]]+)\\]`, 'm').exec(state.text);
  const ends = said ? [Number(said[1]), Number(said[2])] : v === 0 ? [-1, 1] : [0.5 * v, 1.5 * v].sort((x, y) => x - y);
  return ends.map((end) => String(Number(end.toPrecision(6))));
}

/** Dots into the pixels of a frame. */
export class DotLayer {
  constructor() {
    this.canvas = document.createElement('canvas');
    this.key = '';
    this.drawn = 0;
  }

  /**
   * Draws those that are new since the last time, or all where the frame changed.
   * @param {any} ctx @param {Frame} f @param {number} count
   * @param {(i: number) => number} x @param {(i: number) => number} y @param {(i: number) => string} colour
   */
  paint(ctx, f, count, x, y, colour) {
    const scale = window.devicePixelRatio || 1, w = Math.max(1, Math.round(f.place.w * scale)), h = Math.max(1, Math.round(f.place.h * scale));
    const key = [w, h, ...f.xs, ...f.ys].join();
    const own = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d', { willReadFrequently: true }));
    if (key !== this.key || count < this.drawn) {
      this.key = key;
      this.drawn = 0;
      this.canvas.width = w;
      this.canvas.height = h;
    }
    const image = own.getImageData(0, 0, w, h), data = new Uint32Array(image.data.buffer);
    const pack = packing((/** @type {string} */ name) => name);
    const size = scale > 1 || count < 100000 ? 2 : 1;
    for (let i = this.drawn; i < count; i++) {
      const px = Math.floor((x(i) - f.xs[0]) / (f.xs[1] - f.xs[0]) * w), py = Math.floor((f.ys[1] - y(i)) / (f.ys[1] - f.ys[0]) * h);
      if (!(px >= 0 && px < w && py >= 0 && py < h)) continue;
      const pixel = pack(colour(i));
      data[py * w + px] = pixel;
      if (size > 1 && px + 1 < w) data[py * w + px + 1] = pixel;
      if (size > 1 && py + 1 < h) data[(py + 1) * w + px] = pixel;
    }
    own.putImageData(image, 0, 0);
    this.drawn = count;
    ctx.drawImage(this.canvas, f.place.x, f.place.y, f.place.w, f.place.h);
  }

  forget() { this.key = ''; }
}

/** Numbers that come in pieces. */
export class Growing {
  /** @param {Float64ArrayConstructor | Int32ArrayConstructor} kind */
  constructor(kind) {
    this.kind = kind;
    this.data = new kind(1024);
    this.length = 0;
  }
  /** @param {ArrayLike<number>} more */
  push(more) {
    if (this.length + more.length > this.data.length) {
      const larger = new this.kind(Math.max(2 * this.data.length, this.length + more.length));
      larger.set(this.data.subarray(0, this.length));
      this.data = larger;
    }
    this.data.set(/** @type {any} */ (more), this.length);
    this.length += more.length;
  }
}
