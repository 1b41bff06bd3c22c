// @ts-check
// The branch of an orbit or equilibrium in a parameter: stable solid, unstable dashed, special points labelled. It is
// drawn as its points come; click one for its orbit, go on at a special point with another branch.

import { complexText, paintSpectrum } from './circle.js';
import { Growing, JobView, labelled, proposedRange, sections, setOptions, showPeriod, stateNames } from './jobs.js';
import { COLOURS, Frame, ink, padded, short } from './plot.js';
import { make, state } from './state.js';

const STABLE = '#2166ac', UNSTABLE = '#b2182b';
const ARRAYS = ['value', 'second', 'state', 'low', 'high', 't', 'period', 'stable', 'spectrum'];

export class BranchView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'branch');
    this.clear();
  }

  fields() {
    const redraw = { onchange: () => this.schedule() };
    this.parameter = make('select', { 'aria-label': 'Parameter', onchange: () => this.proposeRange() });
    this.from = make('input', { 'aria-label': 'from' });
    this.to = make('input', { 'aria-label': 'to' });
    this.method = make('select', {}, make('option', { value: '' }, 'the orbit a run settles on'), make('option', { value: 'guess' }, 'the orbit near the start'),
      make('option', { value: 'equilibrium' }, 'the point of rest'));
    this.section = make('select');
    this.returns = make('input', { type: 'number', min: 0, max: 1000, value: 0, title: '0: what the run shows' });
    this.measure = make('select', redraw);
    this.show = make('button', { type: 'button', disabled: true, onclick: () => this.showInRun() }, 'Show in Run');
    return [labelled('follow', this.method), labelled('in', this.parameter), labelled('from', this.from), labelled('to', this.to), labelled('section', this.section),
      labelled('returns', this.returns), labelled('show', this.measure), this.show];
  }

  fill() {
    const used = state.model.parameters.filter((/** @type {any} */ p) => p.used).map((/** @type {any} */ p) => p.name), names = stateNames();
    setOptions(this.parameter, used);
    setOptions(this.section, [...sections(), 'none'], this.fresh ? sections()[0] ?? 'none' : undefined);
    setOptions(this.measure, [...names, ...names.flatMap((/** @type {string} */ n) => [`max(${n})`, `min(${n})`]), 'period']);
    if (this.fresh) this.proposeRange();
    this.fresh = false;
  }

  proposeRange() { [this.from.value, this.to.value] = proposedRange(this.parameter.value); }

  clear() {
    /** Points as they came; in order once the branch is complete. @type {Record<string, Growing>} */
    this.points = Object.fromEntries(ARRAYS.map((name) => [name, new Growing(name === 'stable' ? Int32Array : Float64Array)]));
    /** @type {any} */
    this.branch = null;
    this.chosen = -1;
    if (this.show) this.show.disabled = true;
    this.list?.replaceChildren();
  }

  sectionName() { return this.section.value === 'none' ? '' : this.section.value; }

  message() {
    const again = this.begin;
    this.begin = null;
    this.shown = again ?? { vary: [`${this.parameter.value}=${this.from.value}:${this.to.value}`] };
    return { do: 'branch', ...this.shown, section: this.sectionName(), method: this.method.value, points: Number(this.returns.value), until: state.solve.until || undefined };
  }

  command() {
    const how = this.method.value === 'equilibrium' ? ['--equilibrium'] : this.method.value ? ['--guess'] : [];
    const returns = Number(this.returns.value) ? ['--period', this.returns.value] : [];
    return ['follow', `${this.parameter.value}=${this.from.value}:${this.to.value}`, ...(this.sectionName() && !how.includes('--equilibrium') ? ['--section', this.sectionName()] : []), ...how, ...returns,
      ...(this.measure.value ? ['--measure', this.measure.value] : [])];
  }

  /** @param {any} answer */
  receive(answer) {
    if (!answer.part) {
      const chosen = this.chosen;
      this.clear();
      this.chosen = chosen < answer.points ? chosen : -1;
      this.branch = answer;
    }
    for (const name of ARRAYS) this.points[name].push(answer.arrays[name]);
    this.states = answer.states;
    if (!answer.part) this.drawList();
  }

  get count() { return this.points.period.length; }

  /** Another branch at a special point, or with a second parameter the curve of the point. @param {any} special @param {string[]} vary */
  goOn(special, vary) {
    this.history.push({ shown: this.shown });
    this.back.disabled = false;
    this.begin = { vary, label: special.label };
    this.start();
  }

  drawList() {
    const b = this.branch;
    if (!b.found) return void this.list.replaceChildren(make('p', {}, b.message));
    const range = `${this.parameter.value}=${this.from.value}:${this.to.value}`;
    const others = [...this.parameter.options].map((o) => o.value).filter((name) => name !== this.parameter.value);
    const rows = b.special.map((/** @type {any} */ s) => {
      const actions = make('td', {});
      if (b.ranges.length === 1 && s.branches) actions.append(make('button', { type: 'button', onclick: () => this.goOn(s, [range]) }, 'other branch'));
      if (b.ranges.length === 1 && others.length) {
        const second = make('select', { 'aria-label': `second parameter of ${s.label}` }, make('option', { value: '' }, 'curve in …'), ...others.map((name) => make('option', {}, name)));
        second.onchange = () => { if (second.value) this.goOn(s, [range, `${second.value}=${proposedRange(second.value).join(':')}`]); };
        actions.append(second);
      }
      return make('tr', { onclick: () => { this.chosen = s.point; this.choose(); } }, make('td', {}, s.label), make('td', {}, s.type), make('td', {}, short(s.value, 12)), actions, make('td', {}, s.detail));
    });
    const ends = b.ends.map((/** @type {any} */ e) => make('tr', {}, make('td', {}, 'end'), make('td', {}, e.why), make('td', {}, short(e.value, 9)), make('td', {}), make('td', {}, e.detail)));
    this.list.replaceChildren(make('table', {}, ...rows, ...ends));
  }

  /** @param {number} i @returns {(number | null)[][]} */
  spectrumOf(i) {
    const all = this.points.spectrum.data, width = this.count ? this.points.spectrum.length / this.count : 0, list = [];
    for (let k = i * width; k < (i + 1) * width; k += 2) {
      if (all[k] === all[k]) list.push([all[k], all[k + 1]].map((v) => (Number.isFinite(v) ? v : null)));
    }
    return list;
  }

  /** The ordinate of a point. @param {number} i */
  y(i) {
    if (this.points.second.length) return this.points.second.data[i];
    const text = this.measure.value;
    if (text === 'period') return this.points.period.data[i];
    const part = /^(max|min)\((.*)\)$/.exec(text), s = Math.max(0, stateNames().indexOf(part ? part[2] : text));
    return this.points[part ? (part[1] === 'max' ? 'high' : 'low') : 'state'].data[i * (this.states ?? 1) + s];
  }

  /** @param {any} ctx @param {number} width @param {number} height */
  paint(ctx, width, height) {
    const n = this.count, x = this.points.value.data, side = Math.max(120, Math.min(0.3 * width, height - 110));
    const chosen = this.branch && this.chosen >= 0 && this.chosen < n, right = chosen ? side + 60 : 0;
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < n; i++) {
      const y = this.y(i);
      [x0, x1, y0, y1] = [Math.min(x0, x[i]), Math.max(x1, x[i]), Math.min(y0, y), Math.max(y1, y)];
    }
    const ends = [Number(this.from.value), Number(this.to.value)].sort((a, b) => a - b);
    const xs = this.zoomed ? this.zoomed.slice(0, 2) : n && (this.points.second.length || !ends.every(Number.isFinite)) ? padded(x0, x1) : ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : [0, 1];
    const f = this.frame = new Frame({ x: 70, y: 10, w: width - 90 - right, h: height - 54 }, xs, this.zoomed ? this.zoomed.slice(2) : padded(y0, y1, 0.1));
    f.draw(ctx, { x: this.branch?.ranges[0] ?? this.parameter.value, y: this.branch?.ranges[1] ?? this.measure.value });
    if (!n) {
      ctx.fillStyle = ink().soft;
      ctx.textAlign = 'center';
      ctx.font = '14px system-ui, sans-serif';
      ctx.fillText(this.done ? 'Compute follows the orbit or point of rest both ways. Click a point to see it; draw a box to look closer.' : 'computing…', f.place.x + f.place.w / 2, f.place.y + f.place.h / 2);
      return;
    }
    f.clipped(ctx, () => (this.branch ? this.paintLines(ctx, f) : this.paintDots(ctx, f)));
    if (chosen) this.paintChosen(ctx, f, { x: f.place.x + f.place.w + 52, y: 10, side });
    const words = this.branch ? this.branch.special.map((/** @type {any} */ s) => `${s.label} ${s.type} at ${short(s.value)}`).join(', ') || 'nothing special' : 'computing';
    this.canvas.setAttribute('aria-label', `Branch of ${n} points in ${this.parameter.value}: ${words}`);
  }

  /** While it grows. @param {any} ctx @param {Frame} f */
  paintDots(ctx, f) {
    for (const stable of [0, 1]) {
      ctx.fillStyle = stable ? STABLE : UNSTABLE;
      ctx.beginPath();
      for (let i = 0; i < this.count; i++) {
        if (this.points.stable.data[i] === stable) ctx.rect(f.px(this.points.value.data[i]) - 1, f.py(this.y(i)) - 1, 2, 2);
      }
      ctx.fill();
    }
  }

  /** @param {any} ctx @param {Frame} f */
  paintLines(ctx, f) {
    const n = this.count, x = this.points.value.data, plane = this.points.second.length > 0;
    const y = Float64Array.from({ length: n }, (_, i) => this.y(i)), stable = this.points.stable.data;
    ctx.lineWidth = 1.8;
    for (let from = 0, i = 1; i <= n; i++) {
      if (i < n && (plane || stable[i] === stable[from])) continue;
      const solid = plane || stable[from];
      ctx.strokeStyle = solid ? STABLE : UNSTABLE;
      ctx.setLineDash(solid ? [] : [6, 4]);
      f.curve(ctx, x, y, Math.max(0, from - 1), i);
      from = i;
    }
    ctx.setLineDash([]);
    ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
    ctx.textAlign = 'left';
    ctx.textBaseline = 'bottom';
    const taken = [];
    for (const s of this.branch.special) {
      if (s.point >= n) continue;
      const px = f.px(x[s.point]), py = f.py(y[s.point]);
      ctx.fillStyle = ink().ink;
      ctx.beginPath();
      ctx.arc(px, py, 3.4, 0, 2 * Math.PI);
      ctx.fill();
      if (taken.some(([a, b]) => Math.abs(a - px) < 30 && Math.abs(b - py) < 13)) continue;
      taken.push([px, py]);
      ctx.fillText(s.label, px + 5, py - 4);
    }
  }

  /** @param {any} ctx @param {Frame} f @param {{x: number, y: number, side: number}} place */
  paintChosen(ctx, f, place) {
    const i = this.chosen;
    f.clipped(ctx, () => {
      ctx.strokeStyle = COLOURS[4];
      ctx.lineWidth = 2.4;
      ctx.beginPath();
      ctx.arc(f.px(this.points.value.data[i]), f.py(this.y(i)), 7, 0, 2 * Math.PI);
      ctx.stroke();
    });
    const spectrum = this.spectrumOf(i), equilibria = Boolean(this.branch?.equilibria);
    paintSpectrum(ctx, place, spectrum, equilibria);
    ctx.fillStyle = ink().ink;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'top';
    const words = [`${this.branch?.ranges[0] ?? this.parameter.value} = ${short(this.points.value.data[i], 9)}`, ...(equilibria ? [] : [`period ${short(this.points.period.data[i], 9)}`]),
      this.points.stable.data[i] ? 'stable' : 'unstable', ...spectrum.slice(0, 2).map(complexText)];
    words.forEach((word, k) => ctx.fillText(word, place.x, place.y + place.side + 40 + 15 * k));
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const f = this.frame;
    let best = 900;
    for (let i = 0; i < this.count && f; i++) {
      const d = (f.px(this.points.value.data[i]) - f.px(x)) ** 2 + (f.py(this.y(i)) - f.py(y)) ** 2;
      if (d < best) [best, this.chosen] = [d, i];
    }
    if (best < 900) this.choose();
  }

  choose() {
    this.show.disabled = !this.branch || this.branch.ranges.length > 1;
    this.schedule();
  }

  showInRun() {
    const i = this.chosen, n = this.states ?? 1;
    if (i < 0 || !this.branch) return;
    showPeriod([[this.branch.parameter, this.branch.parameters[i]]], [...this.points.state.data.slice(i * n, (i + 1) * n)], this.points.t.data[i], this.points.period.data[i]);
  }

  /** A closer look: the curve is exact, so its points need not be computed anew. @param {number[]} box */
  zoom(box) {
    this.history.push({ zoomed: this.zoomed ?? null });
    this.zoomed = box;
    this.back.disabled = false;
  }

  goBack() {
    const last = this.history.pop();
    this.back.disabled = !this.history.length;
    if (!last) return;
    if ('zoomed' in last) {
      this.zoomed = last.zoomed;
      this.schedule();
      return;
    }
    this.zoomed = null;
    this.begin = last.shown;
    this.start();
  }
}
