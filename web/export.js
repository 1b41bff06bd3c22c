// @ts-check
// Everything leaves: command line, files, pictures, one page that opens without saltus.

import { equations } from './latex.js';
import { ink } from './plot.js';
import * as plane from './plane.js';
import * as series from './series.js';
import { givenOptions, readSettings, state, toast } from './state.js';
import { SvgContext } from './svg.js';

/** @param {string} word */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`);

/** What computes the same in a terminal. @param {string} [command] @param {string[]} [more] */
export function commandLine(command = 'run', more = []) {
  const edited = state.text !== state.opened;
  const words = ['saltus', command, edited ? 'model.toml' : state.call];
  for (const [name, value] of Object.entries(state.p)) words.push('-p', `${name}=${value}`);
  for (const [name, value] of Object.entries(state.x)) words.push('-x', `${name}=${value}`);
  words.push(...more);
  const counted = command === 'section' || command === 'sweep' || command === 'basins';  // points end these, no time
  for (const o of givenOptions(command)) {
    if (counted && o.name === 'until') continue;
    const text = state.solve[o.name];
    if (o.kind === 'settings') for (const [name, value] of Object.entries(readSettings(text))) words.push(o.flag, `${name}=${value}`);
    else words.push(o.flag, ...(o.kind === 'flag' ? [] : [text]));
  }
  return words.map(quoted).join(' ');
}

/** @param {string} command */
export async function copyCommand(command) {
  try { await navigator.clipboard.writeText(command); } catch { /* shown all the same */ }
  const note = state.text !== state.opened ? '\n(the text was changed: Export, model.toml gives the file)' : '';
  toast(command + note);
}

/** @param {string} name @param {BlobPart} content @param {string} type */
export function download(name, content, type) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** What is shown, drawn as SVG by the same code. */
export function svgOfRun() {
  const pictures = /** @type {const} */ ([[series.paint, 'series'], [plane.paint, 'plane']]).map(([paint, id]) => {
    const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById(id));
    const ctx = new SvgContext(canvas.clientWidth, canvas.clientHeight);
    paint(ctx, ctx.width, ctx.height);
    return ctx;
  });
  const [left, right] = pictures, all = new SvgContext(left.width + right.width, Math.max(left.height, right.height));
  all.parts.push(...left.parts, `<g transform="translate(${left.width} 0)">`, ...right.parts.map((p) => p.replace(/clip(\d+)/g, 'clip-right-$1')), '</g>');
  return all.text(ink().paper);
}

/** A diagram or basins; dots and cells are a picture inside. @param {any} view */
export function svgOfView(view) {
  const ctx = new SvgContext(view.canvas.clientWidth, view.canvas.clientHeight);
  view.paint(ctx, ctx.width, ctx.height);
  return ctx.text(ink().paper);
}

/** @param {HTMLCanvasElement[]} canvases @param {string} name */
export function savePng(canvases, name) {
  const all = document.createElement('canvas');
  all.width = canvases.reduce((sum, c) => sum + c.width, 0);
  all.height = Math.max(...canvases.map((c) => c.height));
  const ctx = /** @type {CanvasRenderingContext2D} */ (all.getContext('2d'));
  ctx.fillStyle = ink().paper;
  ctx.fillRect(0, 0, all.width, all.height);
  let x = 0;
  for (const canvas of canvases) { ctx.drawImage(canvas, x, 0); x += canvas.width; }
  all.toBlob((blob) => { if (blob) download(name, blob, 'image/png'); });
}

/** @param {string} text */
const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** One file with everything, opened without saltus and without a network. @param {string} toml */
export function onePage(toml) {
  const run = state.run, model = state.model;
  const value = (/** @type {'p' | 'x'} */ kind, /** @type {any} */ v) => `<tr><td>${escape(v.name)}</td><td>${escape(String(state[kind][v.name] ?? v.text))}</td></tr>`;
  const rows = run.events.slice(0, 2000).map((/** @type {any} */ e, /** @type {number} */ i) => `<tr><td>${i + 1}</td><td>${e[0]}</td><td>${escape(e[1])}</td><td>${escape(e[2].join(', '))}</td><td>${escape(e[3])} → ${escape(e[4])}</td></tr>`);
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>${escape(model.name)}</title>
<style>body{font:15px/1.5 sans-serif;max-width:1200px;margin:2em auto;padding:0 1em}table{border-collapse:collapse;font-size:13px}td,th{padding:1px 12px;text-align:left}svg{max-width:100%;height:auto}pre{background:#f4f4f4;color:#111;padding:1em;overflow:auto}</style>
<h1>${escape(model.name)}</h1><p>${escape(model.ref)}</p>
<p>${equations(model.latex).outerHTML}</p>
${svgOfRun()}
<pre>${escape(run.summary ?? '')}</pre>
<h2>Values</h2><table>${model.parameters.map((/** @type {any} */ v) => value('p', v)).join('')}${model.states.map((/** @type {any} */ v) => value('x', v)).join('')}</table>
<h2>Events</h2><table><tr><th>#</th><th>t</th><th>kind</th><th>on</th><th>mode</th></tr>${rows.join('\n')}</table>
<h2>To compute it again</h2><p>Save as run.toml; then <code>saltus again run.toml</code>, or: <code>${escape(commandLine())}</code></p>
<pre id="run.toml">${escape(toml)}</pre></html>
`;
}
