// @ts-check
// Multipliers about the unit circle, and eigenvalues about the imaginary axis.

import { COLOURS, Frame, ink, short } from './plot.js';

/** One of them in words; null where it is infinite. @param {(number | null)[]} z */
export function complexText([re, im]) {
  if (re === null || im === null) return '∞';
  return im === 0 ? short(re) : `${short(re)} ${im < 0 ? '−' : '+'} ${short(Math.abs(im))} i`;
}

/**
 * @param {any} ctx @param {{x: number, y: number, side: number}} place
 * @param {(number | null)[][]} list @param {boolean} eigenvalues
 */
export function paintSpectrum(ctx, { x, y, side }, list, eigenvalues) {
  const finite = /** @type {number[][]} */ (list.filter((z) => z[0] !== null && z[1] !== null));
  const sizes = finite.map(([re, im]) => Math.hypot(re, im)), largest = Math.max(0, ...sizes);
  const reach = 1.15 * (eigenvalues ? largest || 1 : Math.max(1.1, largest));
  const f = new Frame({ x, y, w: side, h: side }, [-reach, reach], [-reach, reach]);
  f.draw(ctx, { x: eigenvalues ? 'eigenvalues' : 'multipliers' });
  ctx.strokeStyle = ink().soft;
  ctx.lineWidth = 1.2;
  ctx.beginPath();
  if (eigenvalues) {
    ctx.moveTo(f.px(0), y);
    ctx.lineTo(f.px(0), y + side);
  } else {
    ctx.arc(f.px(0), f.py(0), side / (2 * reach), 0, 2 * Math.PI);
  }
  ctx.stroke();
  for (const [re, im] of finite) {
    const stable = eigenvalues ? re < 0 : Math.hypot(re, im) < 1;
    ctx.fillStyle = stable ? COLOURS[2] : COLOURS[1];
    ctx.beginPath();
    ctx.arc(f.px(re), f.py(im), 5, 0, 2 * Math.PI);
    ctx.fill();
  }
  if (finite.length < list.length) {
    ctx.fillStyle = COLOURS[1];
    ctx.textAlign = 'right';
    ctx.fillText(`${list.length - finite.length} infinite`, x + side - 6, y + 6);
  }
}
