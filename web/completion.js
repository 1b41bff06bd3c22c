// @ts-check
// Words that a name in the text may become: those of the model, functions, tables and keys. Tab or Enter takes one, Escape none.

import { element, make, state } from './state.js';

export const FUNCTIONS = ['sign', 'step', 'abs', 'min', 'max', 'sat', 'mod', 'floor', 'ceil', 'sin', 'cos', 'tan', 'sinh', 'cosh', 'tanh',
  'asin', 'acos', 'atan', 'atan2', 'exp', 'log', 'sqrt', 'cbrt', 'if'];
const KEYS = ['equations', 'parameters', 'initial', 'section', 'constraint', 'jump', 'table', 'every', 'direction', 'rising', 'falling',
  'stop', 'restitution', 'phase', 'when', 'until', 'tolerance', 'engine'];
const MOST = 8;

const area = element('text'), list = make('ul', { id: 'completion', role: 'listbox', hidden: true });
area.parentElement?.append(list);
/** @type {string[]} */
let words = [];
let chosen = 0;
/** Where the name begins and ends in the text. */
let from = 0, to = 0;
/** @type {(from: number, to: number, word: string) => void} */
let put = () => {};

export function close() { list.hidden = true; }

/** What begins with the letters before the caret. */
function propose() {
  to = area.selectionStart;
  const before = /[\p{L}_][\p{L}\p{N}_]*$/u.exec(area.value.slice(Math.max(0, to - 40), to)), after = area.value[to] ?? '';
  if (!before || before[0].length < 2 || /[\p{L}\p{N}_]/u.test(after) || area.selectionEnd !== to) return close();
  from = to - before[0].length;
  const names = [...(state.model?.states ?? []), ...(state.model?.parameters ?? [])].map((/** @type {any} */ v) => v.name);
  words = [...new Set([...names, ...(state.model?.columns ?? []), ...FUNCTIONS, ...KEYS])].filter((w) => w.startsWith(before[0]) && w !== before[0] && !w.includes('(')).slice(0, MOST);
  if (!words.length) return close();
  chosen = 0;
  show();
}

function show() {
  const lines = area.value.slice(0, from).split('\n'), style = getComputedStyle(area), pen = document.createElement('canvas').getContext('2d');
  if (pen) pen.font = style.font;
  const width = pen ? pen.measureText(lines[lines.length - 1]).width : 0;
  list.style.left = `${width + parseFloat(style.paddingLeft)}px`;
  list.style.top = `${lines.length * parseFloat(style.lineHeight) + parseFloat(style.paddingTop)}px`;
  list.replaceChildren(...words.map((w, i) => make('li', { role: 'option', 'aria-selected': String(i === chosen), onpointerdown: (/** @type {Event} */ e) => { e.preventDefault(); take(i); } }, w)));
  list.hidden = false;
}

/** @param {number} i */
function take(i) {
  close();
  put(from, to, words[i]);
  area.focus();
  close();
}

/** @param {(from: number, to: number, word: string) => void} replace */
export function start(replace) {
  put = replace;
  area.addEventListener('input', (/** @type {InputEvent} */ event) => (event.inputType === 'insertText' && event.data?.length === 1 ? propose() : close()));
  area.addEventListener('blur', close);
  area.addEventListener('click', close);
  area.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey && event.key === ' ') { event.preventDefault(); return propose(); }
    if (list.hidden) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) { chosen = (chosen + move + words.length) % words.length; show(); }
    else if (event.key === 'Tab' || event.key === 'Enter') take(chosen);
    else if (event.key === 'Escape') close();
    else { if (event.key.length > 1 && event.key !== 'Shift') close(); return; }
    event.preventDefault();
  });
}
