// Behaviours for the scripted upstream: each is an async function of an Exchange. First the good answers,
// then the ways to fail, named as the fault tests name them.

const CREATED = 1700000000;

export function message(content, extra = {}) {
  return { role: 'assistant', content, refusal: null, ...extra };
}

/** A whole chat completion; `fields` overrides or adds top-level members. */
export function completion(content = 'Hello from upstream.', fields = {}) {
  return {
    id: 'chatcmpl-upstream',
    object: 'chat.completion',
    created: CREATED,
    model: 'scripted',
    choices: [{ index: 0, message: message(content), logprobs: null, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 },
    ...fields,
  };
}

export function choice(delta, { index = 0, finish = null, ...rest } = {}) {
  return { index, delta, finish_reason: finish, ...rest };
}

export function chunk(choices, fields = {}) {
  return {
    id: 'chatcmpl-upstream', object: 'chat.completion.chunk', created: CREATED, model: 'scripted',
    choices: [choices].flat(), ...fields,
  };
}

const USAGE = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };

/** A whole answer. `body` is an object, or a string that goes out byte for byte. */
export function whole(body = completion(), headers = {}) {
  return (exchange) => exchange.reply(200, body, headers);
}

export function startStream(exchange, headers = {}) {
  exchange.head(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...headers });
}

/** A stream of these chunk objects (or raw data strings), `gap` milliseconds apart, ended by [DONE]. */
export function streamOf(chunks, { gap = 0, usage = true } = {}) {
  return async (exchange) => {
    startStream(exchange);
    for (const one of chunks) {
      if (gap) await exchange.sleep(gap);
      if (exchange.gone) return;
      exchange.event(one);
    }
    const asked = /"include_usage"\s*:\s*true/.test(exchange.request.text);
    if (usage && asked) exchange.event(chunk([], { usage: USAGE }));
    exchange.event('[DONE]');
    exchange.end();
  };
}

export function textChunks(words, finish = 'stop') {
  return [
    chunk(choice({ role: 'assistant', content: '' })),
    ...words.map((word) => chunk(choice({ content: word }))),
    chunk(choice({}, { finish })),
  ];
}

/** A streamed text, one word a chunk. */
export function textStream(words, options = {}) {
  return streamOf(textChunks(words, options.finish), options);
}

/** Streams words without end until the client leaves. */
export function endlessStream(gap = 5) {
  return async (exchange) => {
    startStream(exchange);
    exchange.event(chunk(choice({ role: 'assistant', content: '' })));
    while (!exchange.gone) {
      exchange.event(chunk(choice({ content: 'tick ' })));
      await exchange.sleep(gap);
    }
  };
}

/** Whole or streamed, as the request asks: what a healthy server does. */
export function healthy(words = ['Hello', ' from', ' upstream', '.'], options = {}) {
  const streamed = textStream(words, options);
  const plain = whole(completion(words.join('')));
  return (exchange) => (/"stream"\s*:\s*true/.test(exchange.request.text) ? streamed(exchange) : plain(exchange));
}

export function status(code, error = {}, headers = {}) {
  const body = { error: { message: `scripted ${code}`, type: 'scripted_error', param: null, code: null, ...error } };
  return (exchange) => exchange.reply(code, body, headers);
}

// --- failures ---------------------------------------------------------------------------------------

/** Sends the head and `n` content chunks of a stream, then leaves it to the caller how to fail. */
async function beginStream(exchange, n) {
  startStream(exchange);
  if (n === 0) return;
  exchange.event(chunk(choice({ role: 'assistant', content: '' })));
  for (let i = 0; i < n; ++i) exchange.event(chunk(choice({ content: `word${i} ` })));
  await exchange.sleep(20); // lets the client see what was sent before it fails
}

export const resetBeforeHeaders = () => (exchange) => exchange.reset();
export const closeBeforeHeaders = () => (exchange) => exchange.close();
export const resetInHeaders = () => async (exchange) => {
  exchange.raw('HTTP/1.1 200 OK\r\ncontent-type: text/ev');
  await exchange.sleep(5);
  exchange.reset();
};
export const resetInStream = (n) => async (exchange) => {
  await beginStream(exchange, n);
  exchange.reset();
};
export const closeInStream = (n) => async (exchange) => {
  await beginStream(exchange, n);
  exchange.close();
};
export const stallBeforeHeaders = () => (exchange) => exchange.stall();
export const stallInStream = (n) => async (exchange) => {
  await beginStream(exchange, n);
  await exchange.stall();
};
/** Keeps the connection alive with comments, but never sends a token. */
export const stallWithComments = (gap = 20) => async (exchange) => {
  startStream(exchange);
  while (!exchange.gone) {
    exchange.body(': still here\n\n');
    await exchange.sleep(gap);
  }
};
export const slowHeaders = (milliseconds, behaviour = healthy()) => async (exchange) => {
  await exchange.sleep(milliseconds);
  await behaviour(exchange);
};
export const notHttp = () => (exchange) => {
  exchange.raw(Buffer.from([0, 1, 2, 3, 255, 254, 10, 13, 0, 0]));
  exchange.close();
};
export const badJson = () => (exchange) => exchange.reply(200, '{"id":"x","choices":[{"index":0,"mess');
export const wrongShape = () => (exchange) => exchange.reply(200, '{"hello":"world"}');
export const htmlPage = () => (exchange) => exchange.reply(200, '<html>gateway</html>', { 'content-type': 'text/html' });
export const badEvent = (n = 0) => async (exchange) => {
  await beginStream(exchange, n);
  exchange.event('{"id":"x","choices":[{"ind');
  exchange.event('[DONE]');
  exchange.end();
};
export const shortBody = () => (exchange) => {
  const text = JSON.stringify(completion());
  exchange.head(200, { 'content-type': 'application/json' }, text.length);
  exchange.raw(text.slice(0, text.length / 2));
  exchange.close();
};
export const emptyBody = () => (exchange) => exchange.reply(200, '');
/** The chunked framing is cut in the middle of a chunk. */
export const cutChunk = (n) => async (exchange) => {
  await beginStream(exchange, n);
  exchange.raw('80\r\ndata: {"id":"x"');
  exchange.close();
};
/** The body ends properly, but without finish_reason and [DONE]. */
export const noDone = (n) => async (exchange) => {
  await beginStream(exchange, n);
  exchange.end();
};
export const errorEvent = (n, error = { message: 'scripted failure', type: 'server_error', code: 'boom' }) => async (exchange) => {
  await beginStream(exchange, n);
  exchange.event({ error });
  exchange.end();
};
export const redirect = (location) => (exchange) => exchange.reply(307, '', { location });

/** Whole-answer form of a fault for requests that do not stream, and the streamed form for those that do. */
export function byForm(plain, streamed) {
  return (exchange) => (/"stream"\s*:\s*true/.test(exchange.request.text) ? streamed(exchange) : plain(exchange));
}
