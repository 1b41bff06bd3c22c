// @ts-check
// A periodic orbit, stable or not: the closed curve, and its multipliers about the unit circle; or a point of rest.

import { complexText, paintSpectrum } from './circle.js';
import { JobView, labelled, sections, setOptions, showPeriod, stateNames } from './jobs.js';
import { COLOURS, Frame, extent, ink, mark, padded, short } from './plot.js';
import { make, state } from './state.js';

export class OrbitView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'orbit');
    this.clear();
  }

  fields() {
    const redraw = { onchange: () => this.schedule() };
    this.section = make('select');
    this.method = make('select', {}, make('option', { value: '' }, 'the orbit a run settles on'), make('option', { value: 'guess' }, 'the orbit near the start'),
      make('option', { value: 'equilibrium' }, 'a point of rest'));
    this.returns = make('input', { type: 'number', min: 0, max: 1000, value: 0, title: '0: what the run shows' });
    this.backward = make('input', { type: 'checkbox', title: 'Unstable orbits are stable backward in time' });
    this.x = make('select', redraw);
    this.y = make('select', redraw);
    this.show = make('button', { type: 'button', disabled: true, onclick: () => this.showInRun() }, 'Show in Run');
    return [labelled('find', this.method), labelled('section', this.section), labelled('returns', this.returns), labelled('backward', this.backward),
      labelled('x', this.x), labelled('y', this.y), this.show];
  }

  fill() {
    const names = ['t', ...stateNames()];
    setOptions(this.section, [...sections(), 'none'], this.fresh ? sections()[0] ?? 'none' : undefined);
    setOptions(this.x, names, this.fresh ? (names.length > 2 ? names[1] : 't') : undefined);
    setOptions(this.y, names, this.fresh ? names[2] ?? names[1] : undefined);
    this.back.hidden = true;
    this.fresh = false;
  }

  clear() {
    /** @type {any} */
    this.data = null;
    if (this.show) this.show.disabled = true;
    this.list?.replaceChildren();
  }

  message() {
    return { do: 'orbit', section: this.sectionName(), method: this.method.value, points: Number(this.returns.value), backward: this.backward.checked, until: state.solve.until || undefined };
  }

  sectionName() { return this.section.value === 'none' ? '' : this.section.value; }

  command() {
    if (this.method.value === 'equilibrium') return ['orbit', '--equilibrium'];
    return ['orbit', ...(this.sectionName() ? ['--section', this.sectionName()] : []), ...(this.method.value ? ['--guess'] : []),
      ...(Number(this.returns.value) ? ['--period', this.returns.value] : []), ...(this.backward.checked ? ['--backward'] : [])];
  }

  /** @param {any} answer */
  receive(answer) {
    this.data = answer;
    this.show.disabled = !answer.found;
    const rows = answer.found ? this.words(answer) : [['none', answer.message]];
    this.list.replaceChildren(make('table', {}, ...rows.map(([name, text]) => make('tr', {}, make('td', {}, name), make('td', {}, text)))));
  }

  /** @param {any} answer @returns {string[][]} */
  words(answer) {
    const at = (/** @type {number[]} */ x) => stateNames().slice(0, 6).map((/** @type {string} */ n, /** @type {number} */ i) => `${n} = ${short(x[i], 9)}`).join(', ');
    const stability = answer.stable ? 'stable' : 'unstable';
    if (answer.what !== 'orbit') {
      const ends = answer.from.length ? [['from', at(answer.from)], ['to', at(answer.to)]] : [];
      return [[answer.what, answer.from.length ? '' : stability], ['at', `${at(answer.state)}${answer.mode ? `, mode ${answer.mode}` : ''}`], ...ends,
        ['eigenvalues', answer.eigenvalues.map(complexText).join(',  ') || 'none']];
    }
    const legs = answer.legs.slice(0, 20).map((/** @type {any} */ l) => `${l.mode || 'smooth'} for ${short(l.length)} until ${l.ended_by}`);
    return [['period', `${answer.period} (${answer.returns} ${answer.returns === 1 ? 'return' : 'returns'})`], ['', stability + (answer.symmetric ? ', symmetric' : '')],
      ['through', `${at(answer.state)} at t = ${short(answer.t, 9)}`], ['multipliers', answer.multipliers.map(complexText).join(',  ') || 'none'],
      ...legs.map((/** @type {string} */ text) => ['leg', text]), ...answer.notes.map((/** @type {string} */ n) => ['note', n])];
  }

  /** @param {any} ctx @param {number} width @param {number} height */
  paint(ctx, width, height) {
    const half = Math.max(200, width - Math.min(height, width * 0.45) - 20), data = this.data?.found ? this.data : null;
    const xs = data?.arrays[this.x.value] ?? [], ys = data?.arrays[this.y.value] ?? [];
    const box = this.rest(data) ?? [...padded(...extentOf(xs), 0.1), ...padded(...extentOf(ys), 0.1)];
    const left = this.frame = new Frame({ x: 70, y: 10, w: half - 90, h: height - 54 }, box.slice(0, 2), box.slice(2));
    left.draw(ctx, { x: this.x.value, y: this.y.value });
    if (!data) {
      ctx.fillStyle = ink().soft;
      ctx.font = '14px system-ui, sans-serif';
      ctx.fillText(this.done ? 'Compute finds the periodic orbit near which the run settles.' : 'computing…', left.place.x + left.place.w / 2, left.place.y + left.place.h / 2);
      return;
    }
    left.clipped(ctx, () => (data.what === 'orbit' ? this.paintOrbit(ctx, left, xs, ys, data) : this.paintRest(ctx, left, data)));
    const side = Math.max(80, Math.min(width - half - 60, height - 64));
    paintSpectrum(ctx, { x: half + 44, y: 10, side }, data.multipliers ?? data.eigenvalues, data.what !== 'orbit');
    this.canvas.setAttribute('aria-label', this.list.textContent);
  }

  /** @param {any} ctx @param {Frame} f @param {ArrayLike<number>} xs @param {ArrayLike<number>} ys @param {any} data */
  paintOrbit(ctx, f, xs, ys, data) {
    ctx.strokeStyle = COLOURS[0];
    ctx.lineWidth = 1.6;
    f.curve(ctx, xs, ys);
    const column = (/** @type {string} */ name) => (name === 't' ? 1 : 2 + stateNames().indexOf(name));
    const [cx, cy] = [column(this.x.value), column(this.y.value)];
    if (data.events.length > 200) return;
    for (const event of data.events) mark(ctx, f.px(event[cx]), f.py(event[cy]), event[0]);
  }

  /** Where a point of rest is shown. @param {any} data */
  rest(data) {
    if (!data || data.what === 'orbit') return null;
    const of = (/** @type {string} */ name) => {
      const i = stateNames().indexOf(name), values = (i < 0 ? [data.t] : [data.state, data.from, data.to].map((x) => x[i])).filter(Number.isFinite);
      return padded(Math.min(...values), Math.max(...values), 0.5);
    };
    return [...of(this.x.value), ...of(this.y.value)];
  }

  /** @param {any} ctx @param {Frame} f @param {any} data */
  paintRest(ctx, f, data) {
    const value = (/** @type {number[]} */ x, /** @type {string} */ name) => (name === 't' ? data.t : x[stateNames().indexOf(name)]);
    const [x, y] = [this.x.value, this.y.value];
    ctx.strokeStyle = ctx.fillStyle = data.stable ? COLOURS[2] : COLOURS[1];
    if (data.from.length) {
      ctx.lineWidth = 4;
      f.curve(ctx, [value(data.from, x), value(data.to, x)], [value(data.from, y), value(data.to, y)]);
    }
    ctx.beginPath();
    ctx.arc(f.px(value(data.state, x)), f.py(value(data.state, y)), 5, 0, 2 * Math.PI);
    ctx.fill();
  }

  showInRun() {
    const { t, period = 0, state: at } = this.data;
    showPeriod([], at, t, period);
  }
}

/** @param {ArrayLike<number>} column @returns {[number, number]} */
function extentOf(column) {
  const [low, high] = extent(column);
  return [low, high];
}
