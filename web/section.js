// @ts-check
// Points of a Poincaré map: two states against each other, or one against its next value.

import { DotLayer, JobView, labelled, needsSection, sections, setOptions, showRun, stateNames } from './jobs.js';
import { Frame, ink, padded } from './plot.js';
import { make, state } from './state.js';

const HUES = ['#440154', '#46327e', '#365c8d', '#277f8e', '#1fa187', '#4ac16d', '#a0da39', '#fde725'];

export class SectionView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'section');
    this.layer = new DotLayer();
    this.clear();
  }

  fields() {
    const redraw = { onchange: () => { this.box = null; this.layer.forget(); this.schedule(); } };
    this.section = make('select');
    this.points = make('input', { type: 'number', min: 1, max: 200000, value: 2000 });
    this.skip = make('input', { type: 'number', min: 0, value: 100 });
    this.x = make('select', redraw);
    this.y = make('select', redraw);
    return [labelled('section', this.section), labelled('points', this.points), labelled('skip', this.skip), labelled('x', this.x), labelled('y', this.y)];
  }

  fill() {
    const names = stateNames();
    setOptions(this.section, sections());
    setOptions(this.x, names, this.fresh ? names[0] : undefined);
    setOptions(this.y, [...names, ...names.map((/** @type {string} */ n) => `next ${n}`)], this.fresh ? names[1] ?? `next ${names[0]}` : undefined);
    this.fresh = false;
    if (!needsSection(this) && this.done && !this.data) this.start();
  }

  clear() {
    /** @type {any} */
    this.data = null;
    this.box = null;
    this.layer?.forget();
  }

  message() {
    return { do: 'section', section: this.section.value, points: Number(this.points.value), skip: Number(this.skip.value) };
  }

  command() { return ['section', '-n', this.points.value, '--skip', this.skip.value, '--section', this.section.value]; }

  /** @param {any} answer */
  receive(answer) { this.data = answer; }

  /** @param {any} ctx @param {number} width @param {number} height */
  paint(ctx, width, height) {
    const names = stateNames(), n = names.length, next = this.y.value.startsWith('next ');
    const i = Math.max(0, names.indexOf(this.x.value)), j = Math.max(0, names.indexOf(this.y.value.replace(/^next /, '')));
    const points = this.data?.arrays.points ?? [], count = Math.max(0, points.length / n - (next ? 1 : 0));
    const x = (/** @type {number} */ k) => points[k * n + i], y = (/** @type {number} */ k) => points[(k + (next ? 1 : 0)) * n + j];
    const range = [Infinity, -Infinity, Infinity, -Infinity];
    for (let k = 0; k < count; k++) {
      range[0] = Math.min(range[0], x(k)); range[1] = Math.max(range[1], x(k));
      range[2] = Math.min(range[2], y(k)); range[3] = Math.max(range[3], y(k));
    }
    const box = this.box ?? [...padded(range[0], range[1], 0.1), ...padded(range[2], range[3], 0.1)];
    const f = this.frame = new Frame({ x: 70, y: 10, w: width - 90, h: height - 54 }, [box[0], box[1]], [box[2], box[3]]);
    f.draw(ctx, { x: this.x.value, y: this.y.value });
    if (next) this.diagonal(ctx, f);
    this.layer.paint(ctx, f, count, x, y, (k) => HUES[Math.min(7, Math.floor(8 * k / count))]);
    this.canvas.setAttribute('aria-label', `${count} points of the section ${this.section.value}`);
    this.list.textContent = count ? `${count} points of '${this.data.section}', early ones dark, late ones light. Click: start a run there.` : '';
  }

  /** @param {any} ctx @param {Frame} f */
  diagonal(ctx, f) {
    f.clipped(ctx, () => {
      ctx.strokeStyle = ink().line;
      ctx.beginPath();
      ctx.moveTo(f.px(f.xs[0]), f.py(f.xs[0]));
      ctx.lineTo(f.px(f.xs[1]), f.py(f.xs[1]));
      ctx.stroke();
    });
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const names = stateNames(), n = names.length, points = this.data?.arrays.points ?? [], f = this.frame;
    const i = names.indexOf(this.x.value), j = names.indexOf(this.y.value);
    let best = 400, at = -1;
    for (let k = 0; k * n < points.length && f; k++) {
      const d = (f.px(points[k * n + i]) - f.px(x)) ** 2 + (j < 0 ? 0 : (f.py(points[k * n + j]) - f.py(y)) ** 2);
      if (d < best) [best, at] = [d, k];
    }
    if (at < 0) return;
    /** @type {Record<string, number>} */
    const start = {};
    names.forEach((/** @type {string} */ name, /** @type {number} */ s) => { start[name] = points[at * n + s]; });
    showRun({}, start);
  }

  /** @param {number[]} box */
  zoom(box) {
    this.history.push(this.box);
    this.back.disabled = false;
    this.box = box;
    this.layer.forget();
  }

  goBack() {
    this.box = this.history.pop() ?? null;
    this.back.disabled = !this.history.length;
    this.layer.forget();
    this.schedule();
  }
}
