// @ts-check
// The page: opens a model, lets hands move things, shows what comes back.

import { BasinsView } from './basins.js';
import { BranchView } from './branch.js';
import * as controls from './controls.js';
import { setText, showMistake } from './editor.js';
import * as events from './events.js';
import { commandLine, copyCommand, download, onePage, savePng, svgOfRun, svgOfView } from './export.js';
import { equations } from './latex.js';
import { Link } from './link.js';
import { OrbitView } from './orbit.js';
import * as plane from './plane.js';
import { short } from './plot.js';
import { Runner } from './runner.js';
import { SectionView } from './section.js';
import * as series from './series.js';
import { byName, dark, element, make, on, settings, state, tell, toast } from './state.js';
import { SweepView } from './sweep.js';

/** For tests: what was drawn, and how long after the hand. */
const watch = { ready: false, frames: 0, /** @type {number[]} */ latencies: [], state, errors: /** @type {string[]} */ ([]), idle: () => !runner.busy && !asking };
Object.assign(window, { saltus: watch });
window.addEventListener('error', (event) => watch.errors.push(event.message));

const link = new Link(onConnection);
const runner = new Runner(link);
let asking = false, looking = false, closing = false, tab = 'run';
const views = { section: new SectionView(link), sweep: new SweepView(link), basins: new BasinsView(link), orbit: new OrbitView(link), branch: new BranchView(link) };
Object.assign(watch, { views, planePixel: plane.pixel, closeRows: series.closeRows, ribbonPixel: series.ribbonPixel, planeTime: plane.surfaceTime, planeField: plane.fieldPoints });

// ---- connection and model -------------------------------------------------------------------------------------------

/** @param {'open' | 'lost' | 'refused'} what */
function onConnection(what) {
  const box = element('connection');
  box.className = what === 'open' ? '' : 'lost';
  box.textContent = { open: '', lost: 'saltus has ended: start it again', refused: 'no connection: open the link that saltus studio prints' }[what];
  if (what !== 'open') { runner.forget(); asking = looking = closing = false; return; }
  if (!state.model) return void link.ask({ do: 'open' }, onModel);
  const listed = state.model.gallery.some((/** @type {any} */ g) => g.name === state.call);
  link.ask(state.file ? { do: 'open' } : listed ? { do: 'open', name: state.call } : { do: 'open', text: state.text }, () => tell('text'));
}

/** @param {any} answer */
function onModel(answer) {
  if (answer.kind === 'error') { showMistake(answer.error); toast(answer.error.report); return; }
  Object.assign(state, { model: answer, call: answer.call, file: answer.file, text: answer.text, opened: answer.text, p: byName(), x: byName(), run: null, cursor: 0, second: NaN });
  state.axes = { x: '', y: '' };
  state.solve = byName();
  controls.makeOptions();
  fillGallery(answer);
  setText(answer.text);
  series.reset();
  plane.reset();
  takeModel(answer);
  runner.request(false);
  tell('opened');
}

/** @param {any} card */
function takeModel(card) {
  state.model = card;
  state.wrong = false;
  document.title = `${card.name} · saltus`;
  element('equations').replaceChildren(equations(card.latex));
  controls.rebuild();
  plane.fillAxes();
}

/** @param {any} answer */
function fillGallery(answer) {
  const select = element('gallery'), listed = answer.gallery.some((/** @type {any} */ g) => g.name === answer.call);
  select.replaceChildren(...(listed ? [] : [make('option', { value: '' }, answer.name)]),
    ...answer.gallery.map((/** @type {any} */ g) => make('option', { value: g.name, title: g.description }, g.name)));
  select.value = listed ? answer.call : '';
  element('save').title = answer.file ? 'Write the file' : 'Download model.toml';
}

element('gallery').addEventListener('change', () => link.ask({ do: 'open', name: element('gallery').value }, onModel));

on('text', () => {
  asking = true;
  link.ask({ do: 'check', text: state.text }, (answer) => {
    if (answer.kind === 'dropped') return;
    asking = false;
    if (answer.kind === 'error') {
      state.wrong = true;
      showMistake(answer.error);
      dim();
      return;
    }
    showMistake(null);
    const { gallery, options } = state.model;
    takeModel({ ...answer, gallery, options });
    controls.makeOptions();
    runner.request(false);
    tell('edited');
  });
});

// ---- runs -----------------------------------------------------------------------------------------------------------

on('values', ({ drag }) => { runner.request(drag); tell('changed'); });
on('start', ({ drag }) => { controls.refresh(); runner.request(drag); });
on('slow', () => {
  element('status').textContent = 'computing…';
  element('view-run').classList.add('pending');
});
on('refused', (error) => {
  state.wrong = true;
  element('view-run').classList.remove('pending');
  dim();
  element('status').textContent = `${error.message}${error.hint ? ` – ${error.hint}` : ''}`;
});

on('run', ({ since, drag }) => {
  state.wrong = false;
  element('view-run').classList.remove('pending');
  const { run } = state, low = Math.min(run.from, run.until), high = Math.max(run.from, run.until);
  state.cursor = Math.max(low, Math.min(high, state.cursor));
  const slider = element('cursor');
  slider.min = String(low);
  slider.max = String(high);
  plane.fillAxes();
  if (!drag) atRest();
  schedule(drag ? since : NaN);
});

function atRest() {
  const { run } = state;
  series.drawLegend();
  events.draw();
  showClock();
  plane.drawCaption();
  element('status').textContent = `${run.event_count} events · ended: ${run.end.why} at t = ${short(run.end.t, 8)}`;
  element('cost').textContent = `engine ${short(run.cost.seconds * 1000, 3)} ms · ${run.cost.steps} steps · ${run.rows} rows`;
  element('series').setAttribute('aria-label', run.summary ?? 'Quantities over time');
  element('plane').setAttribute('aria-label', `Phase plane of ${state.axes.x} and ${state.axes.y}. ${run.summary ?? ''}`);
  const recent = watch.latencies.slice(-20).sort((a, b) => a - b);
  element('latency').textContent = recent.length ? `hand to picture ${Math.round(recent[recent.length >> 1])} ms` : '';
}

let scheduled = false, timeChanged = false, since = NaN;
/** The run that was drawn last. @type {any} */
let drawn = null;
/** Draws in the next frame. @param {number} [hand] when a hand moved @param {boolean} [all] not the plane alone */
function schedule(hand = NaN, all = true) {
  if (hand === hand) since = hand;
  timeChanged ||= all;
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    if (timeChanged) series.draw();
    // Curves of a run at rest are long: one picture per frame, so that no frame keeps a hand waiting.
    const apart = state.run !== drawn && state.run && !state.run.drag;
    drawn = state.run;
    timeChanged = false;
    if (apart) requestAnimationFrame(paintPlane);
    else paintPlane();
  });
}

function paintPlane() {
  scheduled = false;
  if (timeChanged) schedule();
  plane.draw();
  dim();
  askSurfaces();
  askCloser();
  if (!state.run) return;
  watch.frames++;
  watch.ready = true;
  if (since !== since) return;
  const from = since, channel = new MessageChannel();
  since = NaN;
  channel.port1.onmessage = () => watch.latencies.push(performance.now() - from);  // after the frame is handed over
  channel.port2.postMessage(0);
}

/** What is shown is not what the text says, or is not complete: it stays, dimmed. */
function dim() {
  element('view-run').classList.toggle('stale', state.wrong);
}

on('draw', () => { series.drawLegend(); schedule(); });
on('box', () => schedule(NaN, false));
on('axes', () => { plane.setSurfaces(null); schedule(NaN, false); });

// ---- surfaces -------------------------------------------------------------------------------------------------------

let lastLook = '';
function askSurfaces() {
  const question = plane.question();
  if (!question || looking) return;
  const key = JSON.stringify(question);
  if (key === lastLook) return;
  lastLook = key;
  looking = true;
  link.ask(question, (answer) => {
    looking = false;
    if (answer.kind !== 'plane' || !state.run) return;
    plane.setSurfaces(answer);
    if (!state.run.drag) plane.drawCaption();
    schedule(NaN, false);
  });
}

/** The stretch of time that is shown, with rows as close as pixels. */
function askCloser() {
  const wanted = series.closer();
  if (!wanted || closing || runner.busy) return;
  closing = true;
  link.ask({ do: 'window', ...settings(), window: wanted.window }, (answer) => {
    closing = false;
    if (answer.kind !== 'run' || !state.run) return;
    series.setClose(answer, wanted.zoom);
    schedule();
  });
}

// ---- time cursor ----------------------------------------------------------------------------------------------------

function showClock() {
  element('cursor').value = String(state.cursor);
  element('clock').textContent = state.second === state.second
    ? `t = ${short(state.cursor, 6)}, Δt = ${short(state.second - state.cursor, 6)}` : `t = ${short(state.cursor, 8)}`;
}

on('cursor', (t) => {
  if (!state.run) return;
  if (t !== undefined) state.cursor = Math.max(Math.min(state.run.from, state.run.until), Math.min(Math.max(state.run.from, state.run.until), t));
  showClock();
  series.drawLegend();
  plane.drawCaption();
  schedule();
});
element('cursor').addEventListener('input', () => tell('cursor', Number(element('cursor').value)));

let playing = 0;
/** Where the animation goes while it is recorded. @type {MediaRecorder | null} */
let recorder = null;
function stopPlaying() {
  cancelAnimationFrame(playing);
  playing = 0;
  recorder?.stop();
  recorder = null;
  element('play').textContent = '▶';
  element('play').setAttribute('aria-label', 'Play');
}
/** The plane, played from the beginning, as a film. */
function record() {
  if (!state.run || playing) return;
  /** @type {Blob[]} */
  const parts = [];
  recorder = new MediaRecorder(element('plane').captureStream(30), { mimeType: 'video/webm' });
  recorder.ondataavailable = (event) => parts.push(event.data);
  recorder.onstop = () => download(`${stem()}.webm`, new Blob(parts), 'video/webm');
  recorder.start();
  state.cursor = Math.max(state.run.from, state.run.until);
  play();
}

element('play').addEventListener('click', play);
function play() {
  if (playing) return stopPlaying();
  if (!state.run) return;
  const end = Math.max(state.run.from, state.run.until), begin = Math.min(state.run.from, state.run.until);
  if (state.cursor >= end) state.cursor = begin;
  let before = performance.now();
  element('play').textContent = '❚❚';
  element('play').setAttribute('aria-label', 'Pause');
  const natural = (end - begin) / 20;  // the whole run in twenty seconds
  const step = (/** @type {number} */ now) => {
    const t = state.cursor + (now - before) / 1000 * natural * Number(element('speed').value);
    before = now;
    tell('cursor', t);
    if (t >= end) stopPlaying(); else playing = requestAnimationFrame(step);
  };
  playing = requestAnimationFrame(step);
}

// ---- what leaves ----------------------------------------------------------------------------------------------------

const stem = () => state.call.replace(/.*\//, '').replace(/\.toml$/, '') || 'model';
/** @param {string} what @param {(text: string) => void} take */
function fetchExport(what, take) {
  link.ask({ do: 'export', what }, (answer) => (answer.kind === 'export' ? take(answer.text) : toast(answer.error.message)));
}
const EXPORTS = {
  svg: () => download(`${stem()}.svg`, tab === 'run' ? svgOfRun() : svgOfView(/** @type {any} */ (views)[tab]), 'image/svg+xml'),
  png: () => savePng(tab === 'run' ? [element('series'), element('plane')] : [element(`${tab}-canvas`)], `${stem()}.png`),
  page: () => fetchExport('toml', (toml) => download(`${stem()}.html`, onePage(toml), 'text/html')),
  data: () => fetchExport('data', (text) => download(`${stem()}-data.csv`, text, 'text/csv')),
  events: () => fetchExport('events', (text) => download(`${stem()}-events.csv`, text, 'text/csv')),
  toml: () => fetchExport('toml', (text) => download('run.toml', text, 'application/toml')),
  latex: () => fetchExport('latex', (text) => download(`${stem()}.tex`, text, 'text/x-tex')),
  webm: record,
  model: () => download('model.toml', state.text, 'application/toml'),
};
for (const button of document.querySelectorAll('[data-export]')) {
  button.addEventListener('click', () => {
    element('export').open = false;
    /** @type {any} */ (EXPORTS)[button.getAttribute('data-export') ?? '']();
  });
}
document.addEventListener('click', (event) => { if (!element('export').contains(event.target)) element('export').open = false; });

/** Of what the open tab shows. */
function currentCommand() {
  const view = /** @type {any} */ (views)[tab];
  if (!view) return commandLine();
  const [command, ...more] = view.command();
  return commandLine(command, more);
}
element('command').addEventListener('click', () => copyCommand(currentCommand()));
Object.assign(watch, { command: currentCommand });

element('save').addEventListener('click', () => save(false));
/** @param {boolean} force */
function save(force) {
  if (!state.file) return download('model.toml', state.text, 'application/toml');
  link.ask({ do: 'save', text: state.text, force }, (answer) => {
    if (answer.kind === 'saved') { state.opened = state.text; toast(`written: ${answer.file}`); return; }
    if (answer.error.message.includes('changed on disk') && confirm(`${answer.error.message}. Write over it?`)) return save(true);
    toast(answer.error.message);
  });
}

// ---- tabs, dropped files, sizes -------------------------------------------------------------------------------------

const tabs = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('[role="tab"]')]);
/** @param {HTMLElement} chosen */
function select(chosen) {
  for (const other of tabs) {
    other.setAttribute('aria-selected', String(other === chosen));
    other.tabIndex = other === chosen ? 0 : -1;
    element(other.getAttribute('aria-controls') ?? '').hidden = other !== chosen;
  }
  tab = chosen.id.replace('tab-', '');
  tell('tab', tab);
  schedule();
}
tabs.forEach((button, i) => {
  button.addEventListener('click', () => select(button));
  button.addEventListener('keydown', (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const next = tabs[(i + move + tabs.length) % tabs.length];
    next.focus();
    select(next);
  });
});

document.addEventListener('dragover', (event) => { event.preventDefault(); document.body.classList.add('dropping'); });
document.addEventListener('dragleave', () => document.body.classList.remove('dropping'));
document.addEventListener('drop', async (event) => {
  event.preventDefault();
  document.body.classList.remove('dropping');
  const file = event.dataTransfer?.files[0];
  if (file) link.ask({ do: 'open', text: await file.text() }, onModel);
});

new ResizeObserver(() => schedule()).observe(element('views'));
dark.addEventListener('change', () => schedule());
