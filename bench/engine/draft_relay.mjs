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

export class Relay {
  /** `drafter`: the socket of the faster engine, or null: none, and the target drafts as `drafting` says. */
  constructor({ target, drafter, depth, drafting = 'off' }) {
    this.target = target;
    this.drafter = drafter;
    this.drafting = drafting;
    this.depth = depth;
    this.toTarget = new http.Agent({ keepAlive: true });
    this.toDrafter = new http.Agent({ keepAlive: true });
  }

  close() {
    this.toTarget.destroy();
    this.toDrafter.destroy();
  }

  /** Resolves to { tokens, timings, milliseconds }: from the first token to the last. */
  answer(body, channel) {
    this.known = [...body.prompt];
    this.ahead = [];
    this.channel = channel;
    this.asked = null;
    const prompt = body.prompt.length;
    let first = null;
    let last = null;
    return new Promise((resolve) => {
      let ended = false;
      const onTokens = (tokens) => {
        first ??= performance.now();
        last = performance.now();
        this.take(tokens);
        if (this.known.length < prompt + body.max_tokens) this.ask();
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
    this.known.push(...tokens);
    const right = tokens.every((token, i) => i >= this.ahead.length || token === this.ahead[i]);
    // Guesses that were overtaken go on from where they are only if all were right.
    if (right && tokens.length <= this.ahead.length) this.ahead.splice(0, tokens.length);
    else {
      this.ahead = [];
      this.stopAsking();
    }
  }

  stopAsking() {
    this.asked?.destroy();
    this.asked = null;
  }

  ask() {
    if (!this.drafter || this.asked || this.ahead.length >= MOST_AHEAD) return;
    const body = { prompt: [...this.known, ...this.ahead], max_tokens: this.depth, temperature: 0, ignore_eos: true, drafting: 'off', cache_domain: this.channel, stream: true, return_tokens: true };
    const asked = post(this.toDrafter, this.drafter, '/v1/completions', body, tokensOf(
      (tokens) => asked === this.asked && this.push(tokens),
      () => {
        if (asked !== this.asked) return;
        this.asked = null;
        this.ask();
      },
    ));
    this.asked = asked;
  }

  push(tokens) {
    const position = this.known.length + this.ahead.length;
    this.ahead.push(...tokens);
    post(this.toTarget, this.target, '/drafts', { channel: this.channel, position, tokens }, () => {});
  }
}
