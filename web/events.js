// @ts-check
// The table of events, and what the program has to say about the run.

import { KINDS } from './plot.js';
import { element, make, state, tell } from './state.js';

/** Rows at first and with each press of the button; as many at a time as leave the hand free. */
const SOME = 120, AT_ONCE = 24;

/** @param {any} run @param {number} i */
function row(run, i) {
  const [t, kind, on, before, after, count] = run.events[i], look = KINDS[kind];
  const cross = look?.shape === 'x', dot = make('span', { className: cross ? 'cross' : 'dot' }, cross ? '×' : '');
  const colour = kind === 'section' ? 'currentColor' : look?.colour ?? 'currentColor';  // as ink, in light and dark
  if (cross) dot.style.color = colour;
  else { dot.style.borderColor = colour; dot.style.background = look?.shape === 'ring' ? 'transparent' : colour; }
  const cells = [String(i + 1), String(Number(t.toPrecision(15))), '', on.join(', '), before === after ? before : `${before} → ${after}`];
  const line = make('tr', { onclick: () => tell('cursor', t) }, ...cells.map((text) => make('td', {}, text)));
  line.children[2].append(dot, kind === 'chatter' ? `${kind} (${count})` : kind);
  const states = run.arrays['event.state'];
  for (let s = 0; s < Math.min(run.states, 8); s++) line.append(make('td', {}, String(Number(states[i * run.states + s].toPrecision(9)))));
  return line;
}

export function draw() {
  const run = state.run, names = run.columns.slice(1, 1 + Math.min(run.states, 8));
  const head = make('tr', {}, ...['#', 't', 'kind', 'on', 'mode', ...names].map((h) => make('th', { scope: 'col' }, h)));
  const body = make('tbody');
  addRows(body, run, 0);
  element('events').replaceChildren(make('table', {}, make('thead', {}, head), body));
  drawNotes();
}

/** Some more rows. @param {any} body @param {any} run @param {number} from */
function addRows(body, run, from) {
  const to = Math.min(run.events.length, from + SOME);
  const some = (/** @type {number} */ at) => {
    if (state.run !== run) return;
    for (let i = at; i < Math.min(to, at + AT_ONCE); i++) body.append(row(run, i));
    if (at + AT_ONCE < to) setTimeout(() => some(at + AT_ONCE));
    else addRest(body, run, to);
  };
  some(from);
}

/** A button for what is left. @param {any} body @param {any} run @param {number} to */
function addRest(body, run, to) {
  const left = run.event_count - to;
  if (left <= 0) return;
  const cell = make('td', { colSpan: 5 + Math.min(run.states, 8) });
  const line = make('tr', {}, cell);
  if (to < run.events.length) cell.append(make('button', { onclick: () => { line.remove(); addRows(body, run, to); } }, `${left} more`));
  else cell.append(`… ${left} more: Export, Events`);
  body.append(line);
}

function drawNotes() {
  const run = state.run, notes = [];
  const bad = !['time', 'stop', 'count'].includes(run.end.why);
  if (run.late) notes.push(make('p', { className: 'bad' }, `Stopped after 20 s at t = ${run.end.t}: choose a shorter time, or take the command line.`));
  else if (bad) notes.push(make('p', { className: 'bad' }, `Ended at t = ${run.end.t}: ${run.end.why}. ${run.end.message}`));
  for (const message of run.messages) notes.push(make('p', {}, message));
  element('notes').replaceChildren(...notes);
}
