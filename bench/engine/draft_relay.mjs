// Reads an answer as it is made, asks a faster engine what comes next, and sends the guesses to where it is made.
import http from 'node:http';

const MOST_AHEAD = 16; // guesses on the way

function post(agent, socketPath, path, body, onData) {
  const request = http.request({ agent, socketPath, path, method: 'POST', headers: { 'content-type': 'application/json' } }, (response) => {
    response.setEncoding('utf8');
    response.on('data', (text) => onData?.(text));
    response.on('error', () => {});
  });
  request.on('error', () => {});
  request.end(JSON.stringify(body));
  return request;
}

/** Calls `onTokens` with the tokens of each chunk, and `onEnd` with the text of the stream's timings. */
function tokensOf(onTokens, onEnd) {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === 'data: [DONE]') onEnd();
      if (!line.startsWith('data: {')) continue;
      const chunk = JSON.parse(line.slice(6));
      const tokens = chunk.choices?.[0]?.tokens;
      if (tokens?.length) onTokens(tokens);
      if (chunk.timings) onEnd(chunk.timings);
    }
  };
}

/** An engine that says what comes next. */
export class EngineDrafter {
  constructor({ socket, depth }) {
    this.socket = socket;
    this.depth = depth;
    this.agent = new http.Agent({ keepAlive: true });
  }

  /** Calls `onTokens` as they come and `onEnd`; returns a function that stops it. */
  draft({ prompt, channel }, onTokens, onEnd) {
    const body = { prompt, max_tokens: this.depth, temperature: 0, ignore_eos: true, drafting: 'off', cache_domain: channel, stream: true, return_tokens: true };
    const request = post(this.agent, this.socket, '/v1/completions', body, tokensOf(onTokens, onEnd));
    return () => request.destroy();
  }

  close() {
    this.agent.destroy();
  }
}

/** What an engine on another machine would do: it knows the answer, takes its time, and is right as often as told. */
export class RecordedDrafter {
  constructor({ answers, acceptance, milliseconds, depth }) {
    Object.assign(this, { answers, acceptance, milliseconds, depth, state: 1 });
  }

  draft({ prompt, begin }, onTokens, onEnd) {
    const answer = this.answers.get(JSON.stringify(prompt.slice(0, begin)));
    let position = prompt.length - begin;
    const end = Math.min(position + this.depth, answer.length);
    // What follows a wrong guess is of no use anyway.
    let right = true;
    const timer = setInterval(() => {
      if (position >= end) {
        clearInterval(timer);
        return onEnd();
      }
      right &&= this.random() < this.acceptance;
      onTokens([right ? answer[position] : 3]);
      ++position;
    }, this.milliseconds);
    return () => clearInterval(timer);
  }

  random() {
    this.state = (this.state * 1664525 + 1013904223) % 4294967296;
    return this.state / 4294967296;
  }

  close() {}
}

export class Relay {
  /** `target`: its socket. `drafter`: null for none; then the target drafts as `drafting` says. */
  constructor({ target, drafter, drafting = 'off' }) {
    this.target = target;
    this.drafter = drafter;
    this.drafting = drafting;
    this.toTarget = new http.Agent({ keepAlive: true });
  }

  close() {
    this.toTarget.destroy();
    this.drafter?.close();
  }

  /** Resolves to { tokens, timings, milliseconds }: from the first token to the last. */
  answer(body, channel) {
    this.known = [...body.prompt];
    this.ahead = [];
    this.channel = channel;
    this.asked = null;
    this.begin = body.prompt.length;
    this.wanted = body.max_tokens;
    const prompt = this.begin;
    let first = null;
    let last = null;
    return new Promise((resolve) => {
      let ended = false;
      const onTokens = (tokens) => {
        first ??= performance.now();
        last = performance.now();
        this.take(tokens);
        this.ask();
      };
      const onEnd = (timings) => {
        if (ended || !timings) return;
        ended = true;
        this.stopAsking();
        resolve({ tokens: this.known.slice(prompt), timings, milliseconds: last - first });
      };
      const more = this.drafter ? { drafting: 'pushed', draft_channel: channel } : { drafting: this.drafting };
      post(this.toTarget, this.target, '/v1/completions', { ...body, ...more, stream: true, return_tokens: true, stream_options: { include_usage: true } }, tokensOf(onTokens, onEnd));
    });
  }

  take(tokens) {
    for (const token of tokens) {
      if (this.ahead.length > 0 && this.ahead.shift() !== token) {
        this.ahead = [];
        this.stopAsking();
      }
      this.known.push(token);
    }
  }

  stopAsking() {
    this.asked?.stop();
    this.asked = null;
  }

  ask() {
    const left = this.begin + this.wanted - this.known.length - this.ahead.length;
    if (!this.drafter || this.asked || left <= 0 || this.ahead.length >= MOST_AHEAD) return;
    const prompt = [...this.known, ...this.ahead];
    const asked = {};
    this.asked = asked;
    this.drafted = prompt.length;
    const onTokens = (tokens) => asked === this.asked && this.push(tokens);
    const onEnd = () => {
      if (asked !== this.asked) return;
      this.asked = null;
      this.ask();
    };
    asked.stop = this.drafter.draft({ prompt, begin: this.begin, channel: this.channel }, onTokens, onEnd);
  }

  // What the target has said meanwhile is compared, and all that it has not is sent: requests may overtake each other.
  push(tokens) {
    const fresh = [];
    for (const token of tokens) {
      const position = this.drafted++;
      if (position >= this.known.length) fresh.push(token);
      else if (this.known[position] !== token) return this.stopAsking(), this.ask();
    }
    if (fresh.length === 0) return;
    this.ahead.push(...fresh);
    post(this.toTarget, this.target, '/drafts', { channel: this.channel, position: this.known.length, tokens: this.ahead }, () => {});
  }
}
