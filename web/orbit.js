// @ts-check
// A periodic orbit, stable or not: the closed curve, and its multipliers about the unit circle.

import { JobView, labelled, sections, setOptions, stateNames } from './jobs.js';
import { COLOURS, Frame, extent, ink, padded, short } from './plot.js';
import { element, make, state, tell } from './state.js';

/** @param {number[]} z */
function complexText([re, im]) {
  if (re === null || im === null) return '∞';
  return im === 0 ? short(re) : `${short(re)} ${im < 0 ? '−' : '+'} ${short(Math.abs(im))} i`;
}

export class OrbitView extends JobView {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    super(link, 'orbit');
    this.clear();
  }

  fields() {
    const redraw = { onchange: () => this.schedule() };
    this.section = make('select');
    this.method = make('select', {}, make('option', { value: '' }, 'settle, then find it'), make('option', { value: 'guess' }, 'from the start as a guess'));
    this.returns = make('input', { type: 'number', min: 0, max: 1000, value: 0, title: '0: what the run shows' });
    this.x = make('select', redraw);
    this.y = make('select', redraw);
    this.show = make('button', { type: 'button', disabled: true, onclick: () => this.showInRun() }, 'Show in Run');
    return [labelled('section', this.section), labelled('how', this.method), labelled('returns', this.returns), labelled('x', this.x), labelled('y', this.y), this.show];
  }

  fill() {
    const names = stateNames();
    setOptions(this.section, [...sections(), 'none'], this.fresh ? sections()[0] ?? 'none' : undefined);
    setOptions(this.x, names, this.fresh ? names[0] : undefined);
    setOptions(this.y, names, this.fresh ? names[1] ?? names[0] : undefined);
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
    return { do: 'orbit', section: this.sectionName(), method: this.method.value, points: Number(this.returns.value), until: state.solve.until || undefined };
  }

  sectionName() { return this.section.value === 'none' ? '' : this.section.value; }

  command() {
    return ['orbit', ...(this.sectionName() ? ['--section', this.sectionName()] : []), ...(this.method.value ? ['--guess'] : []), ...(Number(this.returns.value) ? ['--period', this.returns.value] : [])];
  }

  /** @param {any} answer */
  receive(answer) {
    this.data = answer;
    this.show.disabled = !answer.found;
    const rows = answer.found
      ? [['period', `${answer.period} (${answer.returns} ${answer.returns === 1 ? 'return' : 'returns'})`], ['', answer.stable ? 'stable' : 'unstable'],
        ['through', stateNames().slice(0, 6).map((/** @type {string} */ n, /** @type {number} */ i) => `${n} = ${short(answer.state[i], 9)}`).join(', ')],
        ['multipliers', answer.multipliers.map(complexText).join(',  ') || 'none'],
        ['modes', answer.legs.map((/** @type {any} */ l) => l.mode).join('  ')], ...answer.notes.map((/** @type {string} */ n) => ['note', n])]
      : [['none', `${answer.why}: ${answer.message}`]];
    this.list.replaceChildren(make('table', {}, ...rows.map(([name, text]) => make('tr', {}, make('td', {}, name), make('td', {}, text)))));
  }

  /** @param {any} ctx @param {number} width @param {number} height */
  paint(ctx, width, height) {
    const half = Math.max(200, width - Math.min(height, width * 0.45) - 20), data = this.data?.found ? this.data : null;
    const xs = data?.arrays[this.x.value] ?? [], ys = data?.arrays[this.y.value] ?? [];
    const left = this.frame = new Frame({ x: 70, y: 10, w: half - 90, h: height - 54 }, padded(...extentOf(xs), 0.1), padded(...extentOf(ys), 0.1));
    left.draw(ctx, { x: this.x.value, y: this.y.value });
    if (!data) {
      ctx.fillStyle = ink().soft;
      ctx.font = '14px system-ui, sans-serif';
      ctx.fillText(this.done ? 'Compute finds the periodic orbit near which the run settles.' : 'computing…', left.place.x + left.place.w / 2, left.place.y + left.place.h / 2);
      return;
    }
    ctx.strokeStyle = COLOURS[0];
    ctx.lineWidth = 1.6;
    left.curve(ctx, xs, ys);
    this.paintCircle(ctx, half, width, height, data);
    this.canvas.setAttribute('aria-label', this.list.textContent);
  }

  /** @param {any} ctx @param {number} from @param {number} width @param {number} height @param {any} data */
  paintCircle(ctx, from, width, height, data) {
    const side = Math.max(80, Math.min(width - from - 60, height - 64)), colours = ink();
    const finite = data.multipliers.filter((/** @type {any} */ z) => z[0] !== null && z[1] !== null);
    const reach = 1.15 * Math.max(1.1, ...finite.map((/** @type {number[]} */ z) => Math.hypot(z[0], z[1])));
    const f = new Frame({ x: from + 44, y: 10, w: side, h: side }, [-reach, reach], [-reach, reach]);
    f.draw(ctx, { x: 'multipliers' });
    ctx.strokeStyle = colours.soft;
    ctx.lineWidth = 1.2;
    ctx.beginPath();
    ctx.arc(f.px(0), f.py(0), side / (2 * reach), 0, 2 * Math.PI);
    ctx.stroke();
    for (const z of finite) {
      ctx.fillStyle = Math.hypot(z[0], z[1]) < 1 ? COLOURS[2] : COLOURS[1];
      ctx.beginPath();
      ctx.arc(f.px(z[0]), f.py(z[1]), 5, 0, 2 * Math.PI);
      ctx.fill();
    }
  }

  showInRun() {
    const { t, period, state: at } = this.data;
    stateNames().forEach((/** @type {string} */ name, /** @type {number} */ i) => { state.x[name] = String(at[i]); });
    Object.assign(state.solve, { from: String(t), until: String(t + period) });
    element('from').value = state.solve.from;
    element('until').value = state.solve.until;
    element('tab-run').click();
    tell('start', { drag: false });
  }
}

/** @param {ArrayLike<number>} column @returns {[number, number]} */
function extentOf(column) {
  const [low, high] = extent(column);
  return [low, high];
}
