// @ts-check
// A slider for every parameter and every initial value. What is moved stays out of the text until it is put there.

import { findValue, replaceText } from './editor.js';
import { formula } from './latex.js';
import { element, make, on, state, tell, toast } from './state.js';

/** @typedef {{ kind: 'p' | 'x', name: string, row: any, range: any, field: any, low: number, high: number, log: boolean }} Slider */

/** @type {Slider[]} */
let sliders = [];
let shape = '';

/** The range of a comment "# [0, 2] friction", or one around the value. @param {Slider} s @param {number} value */
function setRange(s, value) {
  const comment = findValue(s.kind === 'p' ? 'parameters' : 'initial', s.name)?.comment ?? '';
  const said = /#\s*\[\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\]/.exec(comment);
  if (said && Number(said[1]) < Number(said[2])) [s.low, s.high] = [Number(said[1]), Number(said[2])];
  else if (s.kind === 'x') {
    const size = Math.max(1, Math.abs(value) * 2);
    [s.low, s.high] = [-size, size];
  } else if (value === 0) [s.low, s.high] = [-1, 1];
  else [s.low, s.high] = value > 0 ? [0, 2.5 * value] : [2.5 * value, 0];
}

/** @param {Slider} s */
const source = (s) => state.model[s.kind === 'p' ? 'parameters' : 'states'].find((/** @type {any} */ v) => v.name === s.name);
/** @param {Slider} s */
const whole = (s) => Boolean(source(s)?.whole);

/** Slider position 0..1 <-> value. @param {Slider} s @param {number} v */
function toPosition(s, v) {
  if (s.log) return Math.log(v / (s.high * 1e-4)) / Math.log(1e4);
  return (v - s.low) / (s.high - s.low);
}
/** @param {Slider} s @param {number} u */
function toValue(s, u) {
  return s.log ? s.high * 1e-4 * 1e4 ** u : s.low + u * (s.high - s.low);
}

/** A value as short as the slider can resolve. @param {Slider} s @param {number} v */
function rounded(s, v) {
  if (whole(s)) return Math.max(1, Math.round(v));
  if (s.log) return Number(v.toPrecision(4));
  const unit = 10 ** Math.floor(Math.log10((s.high - s.low) / 2000));
  return Number((Math.round(v / unit) * unit).toPrecision(12));
}

/** @param {Slider} s */
function currentNumber(s) {
  const given = state[s.kind][s.name];
  const number = given === undefined ? source(s).value : Number(given);
  return Number.isFinite(number) ? number : source(s).value;
}

/** @param {Slider} s */
function show(s) {
  const given = state[s.kind][s.name];
  s.row.classList.toggle('changed', given !== undefined);
  if (document.activeElement !== s.field || given !== undefined) s.field.value = given ?? source(s).text;
  const value = currentNumber(s);
  s.range.value = String(toPosition(s, value));
  s.range.setAttribute('aria-valuetext', String(given ?? source(s).text));
}

/** @param {Slider} s @param {string} text @param {boolean} drag */
function set(s, text, drag) {
  if (text === source(s).text) delete state[s.kind][s.name];
  else state[s.kind][s.name] = text;
  show(s);
  tell('values', { drag });
}

/** The value goes into the model file. @param {Slider} s */
function putIntoFile(s) {
  const value = state[s.kind][s.name], place = findValue(s.kind === 'p' ? 'parameters' : 'initial', s.name);
  if (value === undefined) return;
  if (!place) return toast(`'${s.name}' has no line of its own in the file: change it there`);
  delete state[s.kind][s.name];
  replaceText(place.from, place.to, Number.isFinite(Number(value)) && value.trim() ? value : `"${value}"`);
  show(s);
}

/** @param {Slider} s @param {KeyboardEvent} event */
function onKey(s, event) {
  const sign = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (!sign) return;
  event.preventDefault();
  const unit = whole(s) ? 1 / (s.high - s.low) : event.shiftKey ? 1 / 2000 : 1 / 200;
  set(s, String(rounded(s, toValue(s, toPosition(s, currentNumber(s)) + sign * unit))), true);
}

/** The wheel over the number turns its last digit. @param {Slider} s @param {WheelEvent} event */
function onWheel(s, event) {
  if (document.activeElement !== s.field) return;
  event.preventDefault();
  const text = s.field.value, number = Number(text);
  if (!text.trim() || !Number.isFinite(number)) return;
  const [digits, power] = text.toLowerCase().split('e'), decimals = (digits.split('.')[1] ?? '').length;
  const unit = 10 ** (Number(power ?? 0) - decimals);
  set(s, String(Number((number - Math.sign(event.deltaY) * unit).toPrecision(12))), true);
}

/** Dragging to an end and letting go widens the range. @param {Slider} s */
function widen(s) {
  const v = currentNumber(s), size = s.high - s.low;
  if (!s.log && v >= s.high - 1e-9 * size) s.high += size;
  if (!s.log && v <= s.low + 1e-9 * size && s.low < 0) s.low -= size;
  show(s);
}

/** @param {Slider} s */
function wire(s) {
  let fineFrom = NaN;
  s.range.addEventListener('pointerdown', () => { fineFrom = currentNumber(s); });
  s.range.addEventListener('input', (/** @type {any} */ event) => {
    let value = toValue(s, Number(s.range.value));
    if (event.shiftKey || s.range.dataset.fine) value = fineFrom + (value - fineFrom) / 10;
    set(s, String(rounded(s, value)), true);
  });
  s.range.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    if (event.shiftKey) s.range.dataset.fine = '1'; else delete s.range.dataset.fine;
  });
  s.range.addEventListener('change', () => { widen(s); tell('values', { drag: false }); });
  s.range.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => onKey(s, event));
  s.field.addEventListener('change', () => set(s, s.field.value.trim() || source(s).text, false));
  s.field.addEventListener('wheel', (/** @type {WheelEvent} */ event) => onWheel(s, event), { passive: false });
  s.row.querySelector('.put').addEventListener('click', () => putIntoFile(s));
  const name = s.row.querySelector('.name');
  name.addEventListener('dblclick', () => { delete state[s.kind][s.name]; setRange(s, source(s).value); show(s); tell('values', { drag: false }); });
  name.addEventListener('click', (/** @type {MouseEvent} */ event) => {
    if (event.detail > 1 || s.kind === 'x' || !(currentNumber(s) > 0)) return;
    if (event.altKey) { s.log = !s.log; if (!s.log) setRange(s, currentNumber(s)); else s.high = Math.max(s.high, currentNumber(s) * 100); show(s); }
  });
}

/** @param {'p' | 'x'} kind @param {any} value */
function makeSlider(kind, value) {
  const label = `${kind === 'p' ? 'Parameter' : 'Initial value'} ${value.name}`;
  const range = make('input', { type: 'range', min: '0', max: '1', step: 'any', id: `${kind}-${value.name}`, 'aria-label': label });
  const field = make('input', { type: 'text', spellcheck: false, 'aria-label': `${label}, number or formula`, autocomplete: 'off' });
  const name = make('button', { className: 'name', title: `${value.name}: double click restores, Alt-click: logarithmic` }, formula(value.latex));
  const put = make('button', { className: 'put', title: 'Put this value into the file', 'aria-label': `Put ${value.name} into the file` }, '↥');
  const row = make('div', { className: 'slider' }, name, range, field, put);
  /** @type {Slider} */
  const s = { kind, name: value.name, row, range, field, low: 0, high: 1, log: false };
  if (value.used === false) { range.disabled = field.disabled = true; row.title = 'nothing depends on it'; }
  setRange(s, value.value);
  wire(s);
  return s;
}

/** After a model was opened or edited. */
export function rebuild() {
  const { parameters, states } = state.model;
  for (const name of Object.keys(state.p)) if (!parameters.some((/** @type {any} */ v) => v.name === name)) delete state.p[name];
  for (const name of Object.keys(state.x)) if (!states.some((/** @type {any} */ v) => v.name === name)) delete state.x[name];
  const newShape = JSON.stringify([state.call, parameters.map((/** @type {any} */ v) => [v.name, v.used]), states.map((/** @type {any} */ v) => v.name)]);
  if (newShape !== shape) {
    shape = newShape;
    const few = states.slice(0, 60);
    sliders = [...parameters.map((/** @type {any} */ v) => makeSlider('p', v)), ...few.map((/** @type {any} */ v) => makeSlider('x', v))];
    element('parameters').replaceChildren(...sliders.filter((s) => s.kind === 'p').map((s) => s.row));
    element('initial').replaceChildren(...sliders.filter((s) => s.kind === 'x').map((s) => s.row),
      ...(states.length > few.length ? [make('p', { className: 'caption' }, `… ${states.length - few.length} more states: set them in the file`)] : []));
  }
  for (const s of sliders) {
    const v = currentNumber(s);
    if (!(v >= s.low && v <= s.high)) setRange(s, v);
    show(s);
  }
}

/** After the start was dragged elsewhere. */
export function refresh() {
  for (const s of sliders) {
    const v = currentNumber(s);
    if (v > s.high) s.high = v + 0.2 * (s.high - s.low);
    if (v < s.low) s.low = v - 0.2 * (s.high - s.low);
    show(s);
  }
}

on('refused', (/** @type {any} */ error) => {
  for (const s of sliders) s.field.classList.toggle('wrong', error.message.includes(`${s.name}=`));
});
on('run', () => { for (const s of sliders) s.field.classList.remove('wrong'); });

element('backward').addEventListener('click', () => {
  if (state.run) setEnd(2 * state.run.from - state.run.until, false);
});

/** Another end of the run. @param {number} until @param {boolean} drag */
export function setEnd(until, drag) {
  state.solve.until = element('until').value = String(Number(until.toPrecision(12)));
  tell('values', { drag });
}

// ---- how to compute: a control for every option that the program describes ---------------------------------------------

/** So many at once; the others are folded away. */
const FIRST = 4;

/** @param {any} o */
function optionControl(o) {
  const without = String(state.model.run[o.name] ?? o.fallback), title = o.sentence, id = o.name;
  if (o.kind === 'flag') return make('input', { type: 'checkbox', id, title });
  if (o.kind !== 'word') return make('input', { type: 'text', id, title, spellcheck: false, autocomplete: 'off', placeholder: without || o.type });
  const others = o.words.filter((/** @type {string} */ word) => word !== without);
  return make('select', { id, title }, make('option', { value: '' }, without),
    ...others.map((/** @type {string} */ word) => make('option', { value: word }, word)));
}

/** @param {any} o @param {any} control */
function takeOption(o, control) {
  const value = o.kind === 'flag' ? control.checked : control.value.trim();
  control.classList.remove('wrong');
  if (value) state.solve[o.name] = value;
  else delete state.solve[o.name];
  tell('values', { drag: false });
}

/** After a model was opened or edited. */
export function makeOptions() {
  const rows = state.model.options.map((/** @type {any} */ o) => {
    const control = optionControl(o);
    control.addEventListener('change', () => takeOption(o, control));
    return make('label', { title: o.sentence }, o.name, control);
  });
  element('solve').replaceChildren(...rows.slice(0, FIRST));
  element('more').querySelector('.options').replaceChildren(...rows.slice(FIRST));
  showOptions();
}

/** What was given, in the controls. */
export function showOptions() {
  for (const o of state.model.options) {
    if (o.kind === 'flag') element(o.name).checked = Boolean(state.solve[o.name]);
    else element(o.name).value = state.solve[o.name] ?? '';
  }
}

on('refused', (/** @type {any} */ error) => {
  for (const o of state.model.options) element(o.name).classList.toggle('wrong', error.message.startsWith(`${o.name} `));
});
on('run', () => { for (const o of state.model.options) element(o.name).classList.remove('wrong'); });
