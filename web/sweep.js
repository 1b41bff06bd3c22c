// @ts-check
// Bifurcation diagrams, and maps of periods over two parameters, that fill coarse to fine: click for an orbit, a box for
// a closer look, Back.

import { DotLayer, Growing, JobView, labelled, needsSection, proposedRange, sections, setOptions, showRun, stateNames } from './jobs.js';
import { PeriodMap } from './map.js';
import { Frame, hue, ink, padded } from './plot.js';
import { make, state } from './state.js';

export class SweepView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'sweep');
    this.layer = new DotLayer();
    this.clear();
  }

  fields() {
    this.known = make('datalist', { id: 'sweep-parameters' });
    this.parameter = make('input', { title: 'A parameter, or a formula of one: 1/omega', onchange: () => this.proposeRange() });
    this.parameter.setAttribute('list', 'sweep-parameters');
    this.second = make('select', { title: 'Periods over two parameters', onchange: () => this.proposeSecond() });
    [this.from2, this.to2] = ['second from', 'second to'].map((l) => make('input', { 'aria-label': l }));
    this.count2 = make('input', { type: 'number', min: 2, max: 1000, value: 60, 'aria-label': 'second values' });
    this.from = make('input', { 'aria-label': 'from' });
    this.to = make('input', { 'aria-label': 'to' });
    this.count = make('input', { type: 'number', min: 2, max: 5000, value: 400 });
    this.points = make('input', { type: 'number', min: 3, max: 5000, value: 100 });
    this.skip = make('input', { type: 'number', min: 0, value: 400 });
    this.section = make('select');
    this.shown = make('select', { onchange: () => { this.yRange = null; this.layer.forget(); this.schedule(); } });
    this.colour = make('select', { onchange: () => { this.layer.forget(); this.drawList(); this.schedule(); } }, ...['none', 'period', 'sliding'].map((c) => make('option', {}, c)));
    this.secondFields = [labelled('from', this.from2), labelled('to', this.to2), labelled('values', this.count2)];
    return [labelled('vary', this.parameter), this.known, labelled('from', this.from), labelled('to', this.to), labelled('values', this.count),
      labelled('and', this.second), ...this.secondFields,
      labelled('section', this.section), labelled('skip', this.skip), labelled('points', this.points), labelled('show', this.shown), labelled('colour', this.colour)];
  }

  fill() {
    const used = state.model.parameters.filter((/** @type {any} */ p) => p.used).map((/** @type {any} */ p) => p.name);
    this.known.replaceChildren(...used.map((/** @type {string} */ n) => make('option', { value: n })));
    if (this.fresh || !this.parameter.value) this.parameter.value = used[0] ?? '';
    setOptions(this.second, ['–', ...used], this.fresh ? '–' : undefined);
    this.showSecond();
    setOptions(this.section, sections());
    setOptions(this.shown, stateNames());
    if (this.fresh) this.proposeRange();
    this.fresh = false;
    needsSection(this);
  }

  proposeRange() {
    if (state.model.parameters.some((/** @type {any} */ p) => p.name === this.parameter.value)) [this.from.value, this.to.value] = proposedRange(this.parameter.value);
    this.yRange = null;
  }

  proposeSecond() {
    if (this.second.value !== '–') [this.from2.value, this.to2.value] = proposedRange(this.second.value);
    if (this.second.value !== '–' && Number(this.count.value) > 100) this.count.value = 80;
    this.showSecond();
  }

  showSecond() { for (const field of this.secondFields) field.hidden = this.second.value === '–'; }

  recolour() { this.layer.forget(); }

  clear() {
    this.value = new Growing(Float64Array);
    this.period = new Growing(Int32Array);
    this.sliding = new Growing(Int32Array);
    this.pointsData = new Growing(Float64Array);
    this.settings = [new Growing(Float64Array), new Growing(Float64Array)];
    /** @type {PeriodMap | null} */
    this.map = null;
    this.runs = 0;
    this.layer?.forget();
    this.list?.replaceChildren();
  }

  message() {
    this.range = [this.from.value, this.to.value];
    this.width = state.model.states.length;
    return { do: 'sweep', vary: this.vary(), section: this.section.value, skip: Number(this.skip.value), points: Number(this.points.value) };
  }

  vary() {
    const first = `${this.parameter.value}=${this.from.value}:${this.to.value}:${this.count.value}`;
    return this.second.value === '–' ? [first] : [first, `${this.second.value}=${this.from2.value}:${this.to2.value}:${this.count2.value}`];
  }

  command() {
    return ['sweep', ...this.vary(), '-n', this.points.value, '--skip', this.skip.value, '--section', this.section.value];
  }

  /** @param {any} answer */
  receive(answer) {
    this.varied = answer.parameters;
    this.settings[0].push(answer.arrays.setting);
    if (answer.arrays.second) this.receiveMap(answer.arrays);
    this.value.push(answer.arrays.value);
    this.period.push(answer.arrays.period);
    this.sliding.push(answer.arrays.sliding);
    if (answer.arrays.points) this.pointsData.push(answer.arrays.points);
    this.runs += answer.runs;
    this.width = answer.states;
    this.drawList();
  }

  /** @param {any} arrays */
  receiveMap({ value, second, second_setting: setting }) {
    const ends = (/** @type {any} */ a, /** @type {any} */ b, /** @type {any} */ n) => [Number(a.value), Number(b.value), Number(n.value)];
    this.map ??= new PeriodMap(ends(this.from, this.to, this.count), ends(this.from2, this.to2, this.count2));
    this.settings[1].push(setting);
    for (let i = 0; i < value.length; i++) this.map.add(this.value.length + i, value[i], second[i]);
  }

  /** What is told by colours: of a map the period, if nothing else. */
  colourMode() { return this.map && this.colour.value === 'none' ? 'period' : this.colour.value; }

  /** What the colours mean. */
  drawList() {
    const mode = this.colourMode(), data = mode === 'period' ? this.period : this.sliding, seen = new Set();
    if (mode !== 'none') for (let i = 0; i < data.length; i++) seen.add(data.data[i]);
    const entries = [...seen].sort((a, b) => a - b).slice(0, 16).map((k) => {
      const none = mode === 'period' ? k === 0 : k < 0, swatch = make('span', { className: 'swatch' });
      swatch.style.background = SweepView.colourOf(mode === 'period' ? k - 1 : k, none);
      return make('span', {}, swatch, none ? 'no period' : mode === 'period' ? `period ${k}` : `${k} sliding`);
    });
    this.list.replaceChildren(...entries);
  }

  /** @param {number} k @param {boolean} none */
  static colourOf(k, none) { return none ? '#8a9099' : hue(k); }

  shownIndex() { return Math.max(0, stateNames().indexOf(this.shown.value)); }

  /** @param {number} i */
  colourOfRun(i) {
    const mode = this.colourMode(), of = SweepView.colourOf;
    return mode === 'period' ? of(this.period.data[i] - 1, this.period.data[i] === 0) : of(this.sliding.data[i], this.sliding.data[i] < 0);
  }

  /** @param {any} ctx @param {number} width @param {number} height */
  paintMap(ctx, width, height) {
    const map = this.map;
    if (!map) return;
    const f = this.frame = new Frame({ x: 70, y: 10, w: width - 90, h: height - 54 }, map.x.ends(), map.y.ends());
    map.paint(ctx, f, (run) => this.colourOfRun(run));
    f.draw(ctx, { x: this.parameter.value, y: this.second.value, grid: false });
    this.canvas.setAttribute('aria-label', `Map of periods over ${this.parameter.value} and ${this.second.value}, ${this.runs} of ${map.run.length} pairs computed`);
  }

  /** @param {any} ctx @param {number} width @param {number} height */
  paint(ctx, width, height) {
    if (this.map) return this.paintMap(ctx, width, height);
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
    const colour = mode === 'none' ? () => base : (/** @type {number} */ i) => this.colourOfRun(i);
    if (this.value.length) this.layer.paint(ctx, f, this.value.length, (i) => values[i], (i) => points[i * n + s], colour);
    else this.hint(ctx, f);
    this.canvas.setAttribute('aria-label', `Bifurcation diagram of ${this.shown.value} against ${this.parameter.value}, ${this.runs} of ${this.count.value} values computed`);
  }

  /** Grows in steps, so that not every dot moves all others. @param {number} low @param {number} high */
  widened(low, high) {
    if (!(high >= low)) return [-1, 1];
    const now = this.auto;
    if (this.done) return padded(low, high, 0.05);
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
    if (this.map) {
      const run = this.map.at(x, y);
      return run < 0 ? undefined : showRun(this.varied.map((/** @type {string} */ name, /** @type {number} */ k) => [name, this.settings[k].data[run]]), []);
    }
    const f = this.frame, n = this.width ?? 1, s = this.shownIndex();
    let best = 400, at = -1;
    for (let i = 0; i < this.value.length && f; i++) {
      const d = (f.px(this.value.data[i]) - f.px(x)) ** 2 + (f.py(this.pointsData.data[i * n + s]) - f.py(y)) ** 2;
      if (d < best) [best, at] = [d, i];
    }
    if (at < 0) return;
    showRun([[this.varied[0], this.settings[0].data[at]]], stateNames().map((/** @type {string} */ name, /** @type {number} */ k) => [name, this.pointsData.data[at * n + k]]));
  }

  /** @param {number[]} box */
  zoom([x0, x1, y0, y1]) {
    this.history.push({ from: this.from.value, to: this.to.value, y: this.yRange, from2: this.from2.value, to2: this.to2.value });
    this.back.disabled = false;
    const text = (/** @type {number} */ v) => String(Number(v.toPrecision(8)));
    [this.from.value, this.to.value] = [text(x0), text(x1)];
    if (this.map) [this.from2.value, this.to2.value] = [text(y0), text(y1)];
    else this.yRange = [y0, y1];
    this.start();
  }

  goBack() {
    const last = this.history.pop();
    this.back.disabled = !this.history.length;
    if (!last) return;
    this.from.value = last.from;
    this.to.value = last.to;
    this.from2.value = last.from2;
    this.to2.value = last.to2;
    this.yRange = last.y;
    this.start();
  }
}
