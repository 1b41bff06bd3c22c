// @ts-check
// Runs: while something is dragged one short request is under way and the newest values follow it; at rest the full run.

import { settings, state, tell } from './state.js';

/** After the last change the run at rest follows, with tables and words. */
const REST = 90;

export class Runner {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    this.link = link;
    /** @type {{ drag: boolean, since: number } | null} */
    this.wanted = null;
    /** @type {{ id: number, drag: boolean, since: number } | null} */
    this.flying = null;
    this.timer = this.patience = 0;
    this.busy = false;
  }

  /** @param {boolean} drag */
  request(drag) {
    this.busy = true;
    this.wanted = { drag, since: performance.now() };
    clearTimeout(this.timer);
    if (drag) this.timer = window.setTimeout(() => this.request(false), REST);
    this.pump();
  }

  pump() {
    if (!this.wanted || this.flying?.drag) return;  // what is dragged takes milliseconds: wait for it
    const { drag, since } = this.wanted;
    this.wanted = null;
    const id = this.link.ask({ do: 'run', drag, ...settings() }, (answer) => this.receive(answer));
    this.flying = { id, drag, since };
    clearTimeout(this.patience);
    this.patience = window.setTimeout(() => { if (this.flying?.id === id) tell('slow'); }, 400);
  }

  /** @param {any} answer */
  receive(answer) {
    if (this.flying?.id !== answer.id) return;
    const { since, drag } = this.flying;
    this.flying = null;
    if (answer.kind === 'run') {
      if (!this.link.socket) return;
      state.run = answer;
      tell('run', { since, drag });
    } else if (answer.kind === 'error') {
      tell('refused', answer.error);
    }
    this.busy = Boolean(this.wanted) || drag;
    this.pump();
  }

  /** The connection is gone: nothing comes back. */
  forget() {
    this.flying = this.wanted = null;
    this.busy = false;
  }
}
