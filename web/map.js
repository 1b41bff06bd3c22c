// @ts-check
// Periods over two parameters: a cell for every pair of values, in blocks that get finer as more of them are known.

import { packing } from './plot.js';

/** How wide the block of each value is until finer ones come, in the order first, last, middle, quarters, ... @param {number} n */
function blocks(n) {
  const widths = new Float64Array(n), last = n - 1;
  const take = (/** @type {number} */ i, /** @type {number} */ width) => { if (!widths[i]) widths[i] = Math.max(1, width); };
  take(0, 2 * n);
  take(last, 2 * n);
  for (let parts = 2; parts <= 4 * n; parts *= 2) for (let k = 1; k < parts; k += 2) take(Math.floor(last * k / parts), n / parts);
  for (let i = 0; i < n; i++) take(i, 1);
  return widths;
}

/** An axis of n values from one end to the other. */
class Axis {
  /** @param {number} from @param {number} to @param {number} n */
  constructor(from, to, n) {
    this.from = from;
    this.step = n > 1 ? (to - from) / (n - 1) : 1;
    this.n = n;
    this.widths = blocks(n);
  }
  /** The value nearest to a number. @param {number} v */
  place(v) { return Math.max(0, Math.min(this.n - 1, Math.round((v - this.from) / this.step))); }
  /** Ends of all cells. */
  ends() { return [this.from - this.step / 2, this.from + (this.n - 0.5) * this.step]; }
  /** Cells that the block of a place covers. @param {number} i */
  block(i) { return [Math.max(0, Math.ceil(i - this.widths[i] / 2)), Math.min(this.n - 1, Math.floor(i + this.widths[i] / 2))]; }
}

export class PeriodMap {
  /** @param {number[]} x from, to, how many @param {number[]} y */
  constructor(x, y) {
    this.x = new Axis(x[0], x[1], x[2]);
    this.y = new Axis(y[0], y[1], y[2]);
    const size = this.x.n * this.y.n;
    /** What is shown in each cell: the number of the run that it comes from, or -1. */
    this.run = new Int32Array(size).fill(-1);
    this.area = new Float64Array(size).fill(Infinity);
    this.canvas = document.createElement('canvas');
    this.canvas.width = this.x.n;
    this.canvas.height = this.y.n;
  }

  /** @param {number} run @param {number} x @param {number} y */
  add(run, x, y) {
    const i = this.x.place(x), j = this.y.place(y), area = this.x.widths[i] * this.y.widths[j];
    const [i0, i1] = this.x.block(i), [j0, j1] = this.y.block(j);
    for (let b = j0; b <= j1; b++) {
      for (let a = i0; a <= i1; a++) {
        const cell = b * this.x.n + a;
        if (area > this.area[cell] && !(a === i && b === j)) continue;  // what is finer stays, in whatever order they come
        this.run[cell] = run;
        this.area[cell] = a === i && b === j ? 0 : area;
      }
    }
  }

  /** The run whose cell holds a point. @param {number} x @param {number} y */
  at(x, y) { return this.run[this.y.place(y) * this.x.n + this.x.place(x)]; }

  /** @param {any} ctx @param {import('./plot.js').Frame} f @param {(run: number) => string} colour */
  paint(ctx, f, colour) {
    const own = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d')), image = own.createImageData(this.x.n, this.y.n);
    const pixels = new Uint32Array(image.data.buffer);
    const pack = packing((/** @type {string} */ name) => name);
    for (let cell = 0; cell < this.run.length; cell++) {
      if (this.run[cell] < 0) continue;
      const row = this.y.n - 1 - Math.floor(cell / this.x.n);
      pixels[row * this.x.n + cell % this.x.n] = pack(colour(this.run[cell]));
    }
    own.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.canvas, f.place.x, f.place.y, f.place.w, f.place.h);
    ctx.imageSmoothingEnabled = true;
  }
}
