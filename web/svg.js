// @ts-check
// A drawing context that writes SVG: pictures are drawn by the same code on the screen and into files.

/** @param {string} text */
const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
/** @param {number} n */
const num = (n) => String(Math.round(n * 100) / 100);

export class SvgContext {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    /** @type {string[]} */
    this.parts = [];
    this.path = '';
    this.strokeStyle = '#000';
    this.fillStyle = '#000';
    this.lineWidth = 1;
    this.globalAlpha = 1;
    this.font = '11px sans-serif';
    this.textAlign = 'left';
    this.textBaseline = 'alphabetic';
    this.lineCap = 'butt';
    this.lineJoin = 'round';
    /** @type {number[]} */
    this.dash = [];
    this.clips = 0;
    /** @type {any[]} */
    this.stack = [];
  }

  save() { this.stack.push({ open: 0, alpha: this.globalAlpha, dash: this.dash, width: this.lineWidth }); }
  restore() {
    const top = this.stack.pop();
    this.globalAlpha = top.alpha;
    this.dash = top.dash;
    this.lineWidth = top.width;
    this.parts.push('</g>'.repeat(top.open));
  }
  /** @param {string} attributes */
  group(attributes) {
    this.parts.push(`<g ${attributes}>`);
    if (this.stack.length) this.stack[this.stack.length - 1].open++;
  }
  /** A mark with a name to read. @param {string} name @param {() => void} paint */
  marked(name, paint) {
    this.parts.push(`<g class="event"><title>${escape(name)}</title>`);
    paint();
    this.parts.push('</g>');
  }
  /** @param {number} x @param {number} y */
  translate(x, y) { this.group(`transform="translate(${num(x)} ${num(y)})"`); }
  /** @param {number} angle */
  rotate(angle) { this.group(`transform="rotate(${num(angle * 180 / Math.PI)})"`); }
  clip() {
    const id = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.group(`clip-path="url(#${id})"`);
  }
  beginPath() { this.path = ''; }
  closePath() { this.path += 'Z'; }
  /** @param {number} x @param {number} y */
  moveTo(x, y) { this.path += `M${num(x)} ${num(y)}`; }
  /** @param {number} x @param {number} y */
  lineTo(x, y) { this.path += `L${num(x)} ${num(y)}`; }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  rect(x, y, w, h) { this.path += `M${num(x)} ${num(y)}h${num(w)}v${num(h)}h${num(-w)}Z`; }
  /** Whole circles only. @param {number} x @param {number} y @param {number} r */
  arc(x, y, r) { this.path += `M${num(x - r)} ${num(y)}a${num(r)} ${num(r)} 0 1 0 ${num(2 * r)} 0a${num(r)} ${num(r)} 0 1 0 ${num(-2 * r)} 0Z`; }
  /** @param {number[]} dash */
  setLineDash(dash) { this.dash = dash; }
  alpha() { return this.globalAlpha < 1 ? ` opacity="${num(this.globalAlpha)}"` : ''; }
  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
    this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${num(this.lineWidth)}" stroke-linejoin="round"${dash}${this.alpha()}/>`);
  }
  fill() { this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha()}/>`); }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  strokeRect(x, y, w, h) { this.beginPath(); this.rect(x, y, w, h); this.stroke(); }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  fillRect(x, y, w, h) { this.beginPath(); this.rect(x, y, w, h); this.fill(); }
  /** @param {string} text */
  measureText(text) { return { width: text.length * 6.2 }; }
  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const anchor = { left: 'start', center: 'middle', right: 'end' }[this.textAlign] ?? 'start';
    const shift = { top: '0.8em', middle: '0.35em', bottom: '-0.2em' }[this.textBaseline] ?? '0';
    const size = /(\d+)px/.exec(this.font)?.[1] ?? '11';
    this.parts.push(`<text x="${num(x)}" y="${num(y)}" dy="${shift}" font-size="${size}" text-anchor="${anchor}" fill="${this.fillStyle}">${escape(text)}</text>`);
  }
  /** A canvas as a picture. @param {HTMLCanvasElement} canvas @param {number} x @param {number} y @param {number} w @param {number} h */
  drawImage(canvas, x, y, w, h) {
    this.parts.push(`<image x="${num(x)}" y="${num(y)}" width="${num(w)}" height="${num(h)}" preserveAspectRatio="none" image-rendering="pixelated" href="${canvas.toDataURL()}"/>`);
  }
  /** @param {string} kind @param {string} text */
  note(kind, text) { this.parts.push(`<g class="${kind}"><title>${escape(text)}</title>`); }
  endNote() { this.parts.push('</g>'); }
  /** Several side by side become one. @param {string} paper */
  text(paper) {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="DejaVu Sans, sans-serif">\n<rect width="100%" height="100%" fill="${paper}"/>\n${this.parts.join('\n')}\n</svg>\n`;
  }
}
