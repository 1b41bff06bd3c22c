// @ts-check
// Points of a Poincaré map: two states against each other, or one against its next value. They come while they are
// computed; the level of a section on a function can be dragged.

import { DotLayer, Growing, JobView, labelled, needsSection, sections, setOptions, showRun, stateNames } from './jobs.js';
import { Frame, extent, ink, padded } from './plot.js';
import { make, settings, state } from './state.js';

const HUES = ['#440154', '#46327e', '#365c8d', '#277f8e', '#1fa187', '#4ac16d', '#a0da39', '#fde725'];
const LEVEL = '#009e73';
/** Points of a map while its level is dragged, and how long one such map may keep the next one waiting (ms). */
const FEW = 300, PATIENCE = 150;

export class SectionView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'section');
    this.layer = new DotLayer();
    /** Where the section lies in the plane shown: x y of one end, of the other, and so on. @type {ArrayLike<number>} */
    this.lines = [];
    this.clear();
  }

  fields() {
    const redraw = { onchange: () => { this.box = null; this.lines = []; this.layer.forget(); this.schedule(); requestAnimationFrame(() => this.askLines()); } };
    this.section = make('select', { onchange: () => { this.level.value = '0'; this.showLevel(); this.start(); } });
    this.level = make('input', { value: '0', onchange: () => this.start() });
    this.levelLabel = labelled('level', this.level);
    this.points = make('input', { type: 'number', min: 1, max: 200000, value: 2000 });
    this.skip = make('input', { type: 'number', min: 0, value: 100 });
    this.x = make('select', redraw);
    this.y = make('select', redraw);
    return [labelled('section', this.section), this.levelLabel, labelled('points', this.points), labelled('skip', this.skip), labelled('x', this.x), labelled('y', this.y)];
  }

  fill() {
    const names = stateNames();
    setOptions(this.section, sections());
    setOptions(this.x, names, this.fresh ? names[0] : undefined);
    setOptions(this.y, [...names, ...names.map((/** @type {string} */ n) => `next ${n}`)], this.fresh ? names[1] ?? `next ${names[0]}` : undefined);
    if (this.fresh) this.level.value = '0';
    this.showLevel();
    this.fresh = false;
    if (!needsSection(this) && this.done && !this.data) this.start();
  }

  movable() { return state.model.movable.includes(this.section.value); }
  showLevel() { this.levelLabel.hidden = !this.movable(); }
  moved() { return this.movable() && this.level.value.trim() !== '0' && this.level.value.trim() !== ''; }

  recolour() { this.layer.forget(); }

  clear() {
    /** @type {any} */
    this.data = null;
    this.times = new Growing(Float64Array);
    this.states = new Growing(Float64Array);
    this.box = null;
    this.lines = [];
    this.layer?.forget();
  }

  message() {
    return { do: 'section', section: this.section.value, points: Number(this.points.value), skip: Number(this.skip.value),
      ...(this.moved() ? { level: this.level.value } : {}) };
  }

  command() {
    return ['section', '-n', this.points.value, '--skip', this.skip.value, '--section', this.section.value,
      ...(this.moved() ? ['--level', this.level.value] : [])];
  }

  /** @param {any} answer */
  receive(answer) {
    this.times.push(answer.arrays.t);
    this.states.push(answer.arrays.points);
    const cut = (/** @type {Growing} */ g) => g.data.subarray(0, g.length), begun = this.data !== null;
    this.data = { section: answer.section, level: answer.level, arrays: { t: cut(this.times), points: cut(this.states) } };
    if (!begun) requestAnimationFrame(() => this.askLines());
  }

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
    const fitted = [...this.fitted(names[i], range[0], range[1]), ...this.fitted(names[j], range[2], range[3])];
    const box = this.held ?? this.box ?? fitted;
    const f = this.frame = new Frame({ x: 70, y: 10, w: width - 90, h: height - 54 }, [box[0], box[1]], [box[2], box[3]]);
    f.draw(ctx, { x: this.x.value, y: this.y.value });
    if (next) this.diagonal(ctx, f);
    this.paintLines(ctx, f);
    const shown = Math.max(count, Number(this.points.value) || 1);  // a colour stays with its point while others come
    this.layer.paint(ctx, f, count, x, y, (k) => HUES[Math.min(7, Math.floor(8 * k / shown))]);
    this.canvas.setAttribute('aria-label', `${count} points of the section ${this.section.value}`);
    const line = this.lines.length ? ' Drag the dashed line to move the section.' : '';
    this.list.textContent = count ? `${count} points of '${this.data.section}', early ones dark, late ones light. Click: start a run there.${line}` : '';
  }

  /** What shows all points; where they all lie at one value, all values of the run. @param {string} name @param {number} low @param {number} high */
  fitted(name, low, high) {
    const [a, b] = extent(state.run?.arrays[name] ?? []);
    return high - low > 1e-6 * (b - a) || !(b > a) ? padded(low, high, 0.1) : padded(Math.min(a, low), Math.max(b, high), 0.1);
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

  // ---- the section itself -------------------------------------------------------------------------------------------

  /** A state of the map, whose values outside the plane shown hold for all of it. */
  anyPoint() { return this.data ? [...this.data.arrays.points.subarray(0, stateNames().length)] : []; }

  /** Where the section lies in the plane shown; nowhere if that is no plane of two states. */
  askLines() {
    const f = this.frame, at = this.anyPoint();
    if (!f || !this.movable() || this.x.value === this.y.value || !stateNames().includes(this.y.value) || !at.length) { this.lines = []; return; }
    const { p, x } = settings(), level = this.data.level;
    this.link.ask({ do: 'plane', axes: [this.x.value, this.y.value], box: [...f.xs, ...f.ys], t: this.data.arrays.t[0], state: at, p, x, section: this.section.value, level }, (answer) => {
      if (answer.kind !== 'plane') return;
      let from = 0;
      for (const { kind, of, count } of answer.lines) {
        if (kind === 'section' && of === this.section.value) this.lines = answer.arrays.ends.subarray(from, from + 4 * count);
        from += 4 * count;
      }
      this.schedule();
    });
  }

  /** @param {any} ctx @param {Frame} f */
  paintLines(ctx, f) {
    f.clipped(ctx, () => {
      ctx.strokeStyle = LEVEL;
      ctx.lineWidth = 1.6;
      ctx.setLineDash([7, 4]);
      ctx.beginPath();
      for (let k = 0; k < this.lines.length; k += 4) {
        ctx.moveTo(f.px(this.lines[k]), f.py(this.lines[k + 1]));
        ctx.lineTo(f.px(this.lines[k + 2]), f.py(this.lines[k + 3]));
      }
      ctx.stroke();
      ctx.setLineDash([]);
    });
  }

  /** Whether a hand takes hold of the section there. @param {number} px @param {number} py */
  grab(px, py) {
    const f = this.frame;
    for (let k = 0; f && k < this.lines.length; k += 4) {
      const [ax, ay, bx, by] = [f.px(this.lines[k]), f.py(this.lines[k + 1]), f.px(this.lines[k + 2]), f.py(this.lines[k + 3])];
      const long = (bx - ax) ** 2 + (by - ay) ** 2, u = long > 0 ? Math.max(0, Math.min(1, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / long)) : 0;
      if (Math.hypot(px - ax - u * (bx - ax), py - ay - u * (by - ay)) > 6) continue;
      this.held = [...f.xs, ...f.ys];  // the box stays under the hand
      return true;
    }
    return false;
  }

  /** The section through the hand: one short map is under way, the newest place follows it. @param {number} px @param {number} py */
  drag(px, py) {
    const f = this.frame, at = this.anyPoint(), names = stateNames();
    if (!f || !at.length) return;
    const rounded = (/** @type {number} */ v, /** @type {number[]} */ [a, b]) => {
      const unit = 10 ** Math.floor(Math.log10((b - a) / 1000));
      return Number((Math.round(v / unit) * unit).toPrecision(12));
    };
    at[names.indexOf(this.x.value)] = rounded(f.x(px), f.xs);
    at[names.indexOf(this.y.value)] = rounded(f.y(py), f.ys);
    this.wanted = at;
    this.pump();
  }

  pump() {
    if (!this.wanted || this.flying && performance.now() - this.flying < PATIENCE) return;
    const through = this.wanted;
    this.wanted = null;
    this.flying = performance.now();
    let fresh = true;
    this.id = this.link.ask({ ...settings('section'), until: undefined, ...this.message(), level: undefined, through, points: Math.min(FEW, Number(this.points.value)) }, (answer) => {
      if (answer.kind === 'points') {
        if (fresh) this.clear();
        fresh = false;
        this.receive(answer);
        this.level.value = String(answer.level);
        this.schedule();
      } else if (answer.kind !== 'progress') {
        this.flying = 0;
        this.pump();
      }
    });
  }

  /** At rest all points. @param {number} px @param {number} py */
  drop(px, py) {
    this.held = null;
    this.drag(px, py);
    const rest = () => { if (this.flying || this.wanted) setTimeout(rest, 20); else this.start(); };
    rest();
  }

  // ---- hands --------------------------------------------------------------------------------------------------------

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
    showRun([], names.map((/** @type {string} */ name, /** @type {number} */ s) => [name, points[at * n + s]]));
  }

  /** @param {number[]} box */
  zoom(box) {
    this.history.push(this.box);
    this.back.disabled = false;
    this.box = box;
    this.layer.forget();
    requestAnimationFrame(() => this.askLines());
  }

  goBack() {
    this.box = this.history.pop() ?? null;
    this.back.disabled = !this.history.length;
    this.layer.forget();
    this.schedule();
    requestAnimationFrame(() => this.askLines());
  }
}
