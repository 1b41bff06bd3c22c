// @ts-check
// Bifurcation diagrams that fill coarse to fine: click for an orbit, a box for a closer look, Back.

import { DotLayer, Growing, JobView, labelled, needsSection, proposedRange, sections, setOptions, showRun, stateNames } from './jobs.js';
import { COLOURS, Frame, ink, padded } from './plot.js';
import { make, state } from './state.js';

export class SweepView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'sweep');
    this.layer = new DotLayer();
    this.clear();
  }

  fields() {
    this.parameter = make('select', { 'aria-label': 'Parameter', onchange: () => this.proposeRange() });
    this.from = make('input', { 'aria-label': 'from' });
    this.to = make('input', { 'aria-label': 'to' });
    this.count = make('input', { type: 'number', min: 2, max: 5000, value: 400 });
    this.points = make('input', { type: 'number', min: 3, max: 5000, value: 100 });
    this.skip = make('input', { type: 'number', min: 0, value: 400 });
    this.section = make('select');
    this.shown = make('select', { onchange: () => { this.yRange = null; this.layer.forget(); this.schedule(); } });
    this.colour = make('select', { onchange: () => { this.layer.forget(); this.drawList(); this.schedule(); } }, ...['none', 'period', 'sliding'].map((c) => make('option', {}, c)));
    return [labelled('vary', this.parameter), labelled('from', this.from), labelled('to', this.to), labelled('values', this.count),
      labelled('section', this.section), labelled('skip', this.skip), labelled('points', this.points), labelled('show', this.shown), labelled('colour', this.colour)];
  }

  fill() {
    const used = state.model.parameters.filter((/** @type {any} */ p) => p.used).map((/** @type {any} */ p) => p.name);
    setOptions(this.parameter, used);
    setOptions(this.section, sections());
    setOptions(this.shown, stateNames());
    if (this.fresh) this.proposeRange();
    this.fresh = false;
    needsSection(this);
  }

  proposeRange() {
    [this.from.value, this.to.value] = proposedRange(this.parameter.value);
    this.yRange = null;
  }

  clear() {
    this.value = new Growing(Float64Array);
    this.period = new Growing(Int32Array);
    this.sliding = new Growing(Int32Array);
    this.pointsData = new Growing(Float64Array);
    this.runs = 0;
    this.layer?.forget();
    this.list?.replaceChildren();
  }

  message() {
    this.range = [this.from.value, this.to.value];
    this.width = state.model.states.length;
    this.varied = this.parameter.value;
    return { do: 'sweep', vary: [`${this.varied}=${this.from.value}:${this.to.value}:${this.count.value}`], section: this.section.value,
      skip: Number(this.skip.value), points: Number(this.points.value) };
  }

  command() {
    return ['sweep', `${this.parameter.value}=${this.from.value}:${this.to.value}:${this.count.value}`, '-n', this.points.value, '--skip', this.skip.value, '--section', this.section.value];
  }

  /** @param {any} answer */
  receive(answer) {
    this.value.push(answer.arrays.value);
    this.period.push(answer.arrays.period);
    this.sliding.push(answer.arrays.sliding);
    this.pointsData.push(answer.arrays.points);
    this.runs += answer.runs;
    this.width = answer.states;
    this.drawList();
  }

  /** What the colours mean. */
  drawList() {
    const mode = this.colour.value, data = mode === 'period' ? this.period : this.sliding, seen = new Set();
    if (mode !== 'none') for (let i = 0; i < data.length; i++) seen.add(data.data[i]);
    const entries = [...seen].sort((a, b) => a - b).slice(0, 16).map((k) => {
      const none = mode === 'period' ? k === 0 : k < 0, swatch = make('span', { className: 'swatch' });
      swatch.style.background = SweepView.colourOf(mode === 'period' ? k - 1 : k, none);
      return make('span', {}, swatch, none ? 'no period   ' : mode === 'period' ? `period ${k}   ` : `${k} sliding   `);
    });
    this.list.replaceChildren(...entries);
  }

  /** @param {number} k @param {boolean} none */
  static colourOf(k, none) { return none ? '#8a9099' : COLOURS[k % COLOURS.length]; }

  shownIndex() { return Math.max(0, stateNames().indexOf(this.shown.value)); }

  /** @param {any} ctx @param {number} width @param {number} height */
  paint(ctx, width, height) {
    const s = this.shownIndex(), n = this.width ?? 1, points = this.pointsData.data, values = this.value.data;
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < this.value.length; i++) {
      const y = points[i * n + s];
      if (y < low) low = y;
      if (y > high) high = y;
    }
    const ys = this.yRange ?? this.widened(low, high);
    const ends = this.value.length || !this.done ? (this.range ?? []).map(Number) : [Number(this.from.value), Number(this.to.value)];
    const xs = ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : [0, 1];
    const f = this.frame = new Frame({ x: 70, y: 10, w: width - 90, h: height - 54 }, xs, ys);
    f.draw(ctx, { x: this.parameter.value, y: this.shown.value });
    const dark = ink().ink, base = dark.startsWith('#') && dark.length === 7 ? dark : '#1a1a40', mode = this.colour.value;
    const of = SweepView.colourOf;
    const colour = mode === 'period' ? (/** @type {number} */ i) => of(this.period.data[i] - 1, this.period.data[i] === 0)
      : mode === 'sliding' ? (/** @type {number} */ i) => of(this.sliding.data[i], this.sliding.data[i] < 0) : () => base;
    if (this.value.length) this.layer.paint(ctx, f, this.value.length, (i) => values[i], (i) => points[i * n + s], colour);
    else this.hint(ctx, f);
    this.canvas.setAttribute('aria-label', `Bifurcation diagram of ${this.shown.value} against ${this.parameter.value}, ${this.runs} of ${this.count.value} values computed`);
  }

  /** Grows in steps, so that not every dot moves all others. @param {number} low @param {number} high */
  widened(low, high) {
    if (!(high >= low)) return [-1, 1];
    const now = this.auto;
    if (!now || low < now[0] || high > now[1] || (high - low) < 0.4 * (now[1] - now[0])) this.auto = padded(low, high, 0.1);
    return this.auto ?? [-1, 1];
  }

  /** @param {any} ctx @param {Frame} f */
  hint(ctx, f) {
    ctx.fillStyle = ink().soft;
    ctx.textAlign = 'center';
    ctx.font = '14px system-ui, sans-serif';
    ctx.fillText(this.done ? 'Compute fills the diagram coarse to fine. Click a point for its orbit; draw a box to look closer.' : 'computing…', f.place.x + f.place.w / 2, f.place.y + f.place.h / 2);
  }

  /** The nearest dot's orbit. @param {number} x @param {number} y */
  click(x, y) {
    const f = this.frame, n = this.width ?? 1, s = this.shownIndex();
    let best = 400, at = -1;
    for (let i = 0; i < this.value.length && f; i++) {
      const d = (f.px(this.value.data[i]) - f.px(x)) ** 2 + (f.py(this.pointsData.data[i * n + s]) - f.py(y)) ** 2;
      if (d < best) [best, at] = [d, i];
    }
    if (at < 0) return;
    /** @type {Record<string, number>} */
    const start = {};
    stateNames().forEach((/** @type {string} */ name, /** @type {number} */ k) => { start[name] = this.pointsData.data[at * n + k]; });
    showRun({ [this.varied ?? this.parameter.value]: this.value.data[at] }, start);
  }

  /** @param {number[]} box */
  zoom([x0, x1, y0, y1]) {
    this.history.push({ from: this.from.value, to: this.to.value, y: this.yRange });
    this.back.disabled = false;
    this.from.value = String(Number(x0.toPrecision(8)));
    this.to.value = String(Number(x1.toPrecision(8)));
    this.yRange = [y0, y1];
    this.start();
  }

  goBack() {
    const last = this.history.pop();
    this.back.disabled = !this.history.length;
    if (!last) return;
    this.from.value = last.from;
    this.to.value = last.to;
    this.yRange = last.y;
    this.start();
  }
}
