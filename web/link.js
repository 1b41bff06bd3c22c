// @ts-check
// The one socket to the program: requests out, answers in, each to whoever asked.

import { byName } from './state.js';

/** Answers of these kinds are followed by more. */
const PARTIAL = new Set(['dots', 'points', 'cells', 'orbit', 'branch', 'progress']);

/** The token comes in the fragment of the link and is kept for this tab only. */
function takeToken() {
  if (location.hash.length > 1) {
    sessionStorage.setItem('saltus.token', location.hash.slice(1));
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem('saltus.token') ?? '';
}

/**
 * A binary frame: "SAL1", length of the header, header, arrays.
 * @param {ArrayBuffer} buffer
 */
export function decode(buffer) {
  const view = new DataView(buffer);
  if (view.getUint32(0, true) !== 0x314c4153) throw new Error('a frame of another version');
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  /** @type {Record<string, Float64Array | Int32Array>} */
  const arrays = byName();
  for (const a of header.arrays) {
    const at = 8 + length + a.offset;
    arrays[a.name] = a.type === 'f64' ? new Float64Array(buffer, at, a.length) : new Int32Array(buffer, at, a.length);
  }
  return { ...header, arrays };
}

export class Link {
  /** @param {(state: 'open' | 'lost' | 'refused') => void} onState */
  constructor(onState) {
    this.onState = onState;
    this.token = takeToken();
    this.lastId = 0;
    /** @type {Map<number, (answer: any) => void>} */
    this.waiting = new Map();
    this.connect();
  }

  connect() {
    let opened = false;
    const socket = new WebSocket(`ws://${location.host}/ws`, ['saltus.v1', `saltus.token.${this.token}`]);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => { opened = true; this.onState('open'); };
    socket.onmessage = (event) => this.receive(typeof event.data === 'string' ? JSON.parse(event.data) : decode(event.data));
    socket.onclose = () => {
      this.waiting.clear();
      this.onState(opened ? 'lost' : 'refused');
      setTimeout(() => this.connect(), 1500);
    };
    this.socket = socket;
  }

  /** @param {any} answer */
  receive(answer) {
    const take = this.waiting.get(answer.id);
    if (!PARTIAL.has(answer.kind)) this.waiting.delete(answer.id);
    take?.(answer);
  }

  /**
   * @param {object} message
   * @param {(answer: any) => void} [onAnswer]
   * @returns {number} the request's id
   */
  ask(message, onAnswer) {
    const id = ++this.lastId;
    if (this.socket.readyState !== WebSocket.OPEN) return id;
    if (onAnswer) this.waiting.set(id, onAnswer);
    this.socket.send(JSON.stringify({ ...message, id }));
    return id;
  }
}
