// @ts-check
// Basins of attraction, refined level by level; each attractor keeps its colour.

import { JobView, labelled, needsSection, sections, setOptions, showRun, stateNames } from './jobs.js';
import { Frame, hue, ink, packing } from './plot.js';
import { dark, make, state } from './state.js';

const GREYS = () => (dark.matches ? ['#2c3037', '#454b54', '#626975', '#868e9b'] : ['#ededed', '#c4c4c4', '#9a9a9a', '#707070']);

export class BasinsView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'basins');
    this.clear();
  }

  fields() {
    const propose = { onchange: () => this.propose() };
    this.x = make('select', propose);
    this.y = make('select', propose);
    [this.x0, this.x1, this.y0, this.y1] = ['x from', 'x to', 'y from', 'y to'].map((l) => make('input', { 'aria-label': l }));
    this.finest = make('select', {}, ...[50, 100, 200, 400].map((n) => make('option', {}, String(n))));
    this.finest.value = '200';
    this.method = make('select', {}, make('option', {}, 'cells'), make('option', {}, 'direct'));
    this.section = make('select');
    return [labelled('x', this.x), this.x0, this.x1, labelled('y', this.y), this.y0, this.y1, labelled('cells', this.finest), labelled('method', this.method), labelled('section', this.section)];
  }

  fill() {
    const names = stateNames();
    setOptions(this.x, names, this.fresh ? names[0] : undefined);
    setOptions(this.y, names, this.fresh ? names[1] ?? names[0] : undefined);
    setOptions(this.section, sections());
    if (this.fresh) this.propose();
    this.fresh = false;
    needsSection(this);
  }

  /** A box around the last run. */
  propose() {
    for (const [axis, low, high] of /** @type {const} */ ([['x', 'x0', 'x1'], ['y', 'y0', 'y1']])) {
      const column = state.run?.arrays[this[axis].value] ?? [];
      let a = Infinity, b = -Infinity;
      for (const v of column) { if (v < a) a = v; if (v > b) b = v; }
      const air = b > a ? 0.25 * (b - a) : 1;
      this[low].value = String(Number((Number.isFinite(a) ? a - air : -1).toPrecision(3)));
      this[high].value = String(Number((Number.isFinite(b) ? b + air : 1).toPrecision(3)));
    }
  }

  clear() {
    /** @type {any} */
    this.data = null;
    this.levels = 0;
    this.list?.replaceChildren();
  }

  axes() { return [`${this.x.value}=${this.x0.value}:${this.x1.value}`, `${this.y.value}=${this.y0.value}:${this.y1.value}`]; }

  message() {
    const finest = Number(this.finest.value);
    return { do: 'basins', axes: this.axes(), levels: [50, 100, 200, 400].filter((n) => n <= finest), method: this.method.value, section: this.section.value };
  }

  command() { return ['basins', ...this.axes().map((a) => `${a}:${this.finest.value}`), '--method', this.method.value, ...(this.method.value === 'direct' ? ['--refine'] : []), '--section', this.section.value]; }

  /** @param {any} answer */
  receive(answer) {
    this.data = answer;
    this.levels++;
    this.recolour();
    this.drawList();
  }

  /** A picture element per cell. */
  recolour() {
    if (!this.data) return;
    const [w, h] = this.data.cells, group = this.data.arrays.group;
    const canvas = this.picture = document.createElement('canvas');
    canvas.width = w;
    canvas.height = h;
    const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')), image = ctx.createImageData(w, h);
    const pixels = new Uint32Array(image.data.buffer), colour = packing((/** @type {number} */ g) => this.colourOf(g));
    for (let j = 0; j < h; j++) for (let i = 0; i < w; i++) pixels[(h - 1 - j) * w + i] = colour(group[j * w + i]);
    ctx.putImageData(image, 0, 0);
  }

  /** @param {number} group */
  colourOf(group) {
    if (group >= 1) return hue(group - 1);
    const greys = GREYS();
    return greys[Math.min(3, this.data.fates.findIndex((/** @type {any} */ f) => f.id === group))] ?? greys[0];
  }

  drawList() {
    const row = (/** @type {any} */ a, /** @type {string} */ name) => {
      const swatch = make('span', { className: 'swatch' });
      swatch.style.background = this.colourOf(a.id);
      return make('tr', {}, make('td', {}, swatch, name), make('td', {}, `${(100 * a.fraction).toFixed(2)} %`));
    };
    const rows = this.data.attractors.map((/** @type {any} */ a) => row(a, `attractor ${a.id}: ${a.period > 0 ? `period ${a.period}` : 'no period'}`));
    this.list.replaceChildren(make('table', {}, ...rows, ...this.data.fates.map((/** @type {any} */ f) => row(f, f.name))));
  }

  /** @param {any} ctx @param {number} width @param {number} height */
  paint(ctx, width, height) {
    const box = this.data?.box ?? [this.x0, this.x1, this.y0, this.y1].map((i) => Number(i.value));
    const good = box.every(Number.isFinite) && box[0] < box[1] && box[2] < box[3] ? box : [0, 1, 0, 1];
    const f = this.frame = new Frame({ x: 70, y: 10, w: width - 90, h: height - 54 }, [good[0], good[1]], [good[2], good[3]]);
    f.draw(ctx, { x: this.data?.axes[0] ?? this.x.value, y: this.data?.axes[1] ?? this.y.value });
    if (!this.data) {
      ctx.fillStyle = ink().soft;
      ctx.font = '14px system-ui, sans-serif';
      ctx.fillText(this.done ? 'Compute shows which initial states go to which attractor. Click: start there; draw a box to look closer.' : 'computing…', f.place.x + f.place.w / 2, f.place.y + f.place.h / 2);
      return;
    }
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.picture, f.place.x, f.place.y, f.place.w, f.place.h);
    this.paintAttractors(ctx, f);
    this.canvas.setAttribute('aria-label', `Basins: ${this.list.textContent}`);
  }

  /** @param {any} ctx @param {Frame} f */
  paintAttractors(ctx, f) {
    const names = stateNames(), n = this.data.states, points = this.data.arrays.points;
    const i = names.indexOf(this.data.axes[0]), j = names.indexOf(this.data.axes[1]);
    f.clipped(ctx, () => {
      for (let k = 0; k * n < points.length; k++) {
        ctx.fillStyle = '#ffffff';
        ctx.strokeStyle = '#1b1b1b';
        ctx.lineWidth = 1.5;
        ctx.beginPath();
        ctx.arc(f.px(points[k * n + i]), f.py(points[k * n + j]), 3.5, 0, 2 * Math.PI);
        ctx.fill();
        ctx.stroke();
      }
    });
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    if (this.data) showRun([], [[this.data.axes[0], Number(x.toPrecision(6))], [this.data.axes[1], Number(y.toPrecision(6))]]);
  }

  box() { return [this.x0, this.x1, this.y0, this.y1]; }

  /** @param {number[]} box */
  zoom(box) {
    this.history.push(this.box().map((i) => i.value));
    this.back.disabled = false;
    this.box().forEach((input, k) => { input.value = String(Number(box[k].toPrecision(6))); });
    this.start();
  }

  goBack() {
    const last = this.history.pop();
    this.back.disabled = !this.history.length;
    if (!last) return;
    this.box().forEach((input, k) => { input.value = last[k]; });
    this.start();
  }
}
