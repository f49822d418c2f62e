// Errors as the official client sees them: classes by status, retries, and failures inside a stream.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { closeInStream, errorEvent, resetInStream, stallInStream, status, textStream } from '../answers.mjs';
import { withUpstream } from '../fixture.mjs';
import { failureOf, gather, target } from '../harness.mjs';

const fixture = withUpstream((upstream) => `
[server]
max_body_bytes = "1MiB"
max_header_bytes = "16KiB"
${target('up', upstream.url, { idle_seconds: 1 })}
${target('hasty', upstream.url, { first_byte_seconds: 1 })}`);
const { scenario } = fixture;
const ask = { model: 'up', messages: [{ role: 'user', content: 'Say hello.' }] };
const create = (client = fixture.client, more = {}) => client.chat.completions.create({ ...ask, ...more });

function checkErrorObject(error) {
  assert.ok(error instanceof OpenAI.APIError, `${error}`);
  assert.equal(typeof error.error.message, 'string');
  assert.ok(error.error.message.length > 10, 'an error has a sentence for people');
  assert.equal(typeof error.error.type, 'string');
  for (const member of ['param', 'code']) assert.ok(member in error.error, `${member} is missing`);
}

for (const [code, type] of [[400, OpenAI.BadRequestError], [422, OpenAI.APIError]]) {
  scenario(`a target's ${code} reaches the client as such`, async () => {
    fixture.upstream.answer(status(code, { message: 'scripted: the temperature is odd' }));
    const error = await failureOf(create());
    checkErrorObject(error);
    assert.ok(error instanceof type, `${error.constructor.name} ${error.status}`);
    assert.ok(error.status >= 400 && error.status < 500, `${error.status}`);
    assert.match(error.message, /temperature is odd/);
    assert.equal(fixture.upstream.requests.length, 1, 'the client\'s own mistake is not tried again');
  });
}

// A target that refuses our key or lacks our model is our misconfiguration, not the client's: it must not look
// like the client's key was wrong.
for (const code of [401, 403, 404]) {
  scenario(`a target's ${code} is reported as the target's failure`, async () => {
    fixture.upstream.answer(status(code));
    const error = await failureOf(create());
    checkErrorObject(error);
    assert.ok(error.status >= 500 || error.status === code, `${error.status}`);
  });
}

scenario('a target\'s 413 is an error with a status', async () => {
  fixture.upstream.answer(status(413));
  const error = await failureOf(create());
  checkErrorObject(error);
  assert.ok([413, 400, 502].includes(error.status), `${error.status}`);
});

scenario('a target\'s 429 is a rate limit error that says when to come back', async () => {
  fixture.upstream.answer(status(429, {}, { 'retry-after': '3' }));
  const error = await failureOf(create());
  checkErrorObject(error);
  assert.ok(error instanceof OpenAI.RateLimitError || error.status === 503, `${error.status}`);
  assert.ok(Number(error.headers.get('retry-after')) >= 1, `retry-after: ${error.headers.get('retry-after')}`);
});

scenario('a target\'s 500 is a server error', async () => {
  fixture.upstream.answer(status(500));
  const error = await failureOf(create());
  checkErrorObject(error);
  assert.ok(error instanceof OpenAI.InternalServerError, `${error.status}`);
});

scenario('the client\'s retries succeed once the target has recovered', async () => {
  fixture.upstream.next(status(429, {}, { 'retry-after-ms': '50', 'retry-after': '1' }));
  const started = performance.now();
  const answer = await create(fixture.molly.client({ maxRetries: 2 }));
  assert.equal(answer.choices[0].message.content, 'Hello from upstream.');
  assert.ok(performance.now() - started < 10_000);
  assert.equal(fixture.upstream.requests.length, 2);
});

scenario('an unknown model is not found, with a sentence that names it', async () => {
  const error = await failureOf(create(fixture.client, { model: 'no-such-model' }));
  checkErrorObject(error);
  assert.ok(error instanceof OpenAI.NotFoundError, `${error.status}`);
  assert.equal(error.code, 'model_not_found');
  assert.match(error.message, /no-such-model/);
});

scenario('a body that is no JSON is a bad request', async () => {
  for (const body of ['{"model":', '[]', '"x"', '', '{"model":"up","messages":[{"role":"user","content":"\xff"}]} trailing', '{"a":'.repeat(500)]) {
    const answer = await fixture.molly.post('/v1/chat/completions', body);
    assert.equal(answer.status, 400, body.slice(0, 40));
    assert.equal(typeof (await answer.json()).error.message, 'string');
  }
  assert.equal(fixture.upstream.requests.length, 0);
});

scenario('a field of the wrong type is a bad request that names the field', async () => {
  for (const [fields, name] of [[{ messages: 'hi' }, 'messages'], [{ temperature: 'hot' }, 'temperature'], [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text'], [{ n: -1 }, 'n']]) {
    const error = await failureOf(create(fixture.client, fields));
    checkErrorObject(error);
    assert.equal(error.status, 400, name);
    assert.equal(error.param, name);
  }
});

scenario('a request without messages is a bad request', async () => {
  const error = await failureOf(create(fixture.client, { messages: undefined }));
  assert.equal(error.status, 400);
  assert.equal(error.param, 'messages');
});

scenario('a body over the limit is refused as too large', async () => {
  const error = await failureOf(create(fixture.client, { messages: [{ role: 'user', content: 'x'.repeat(1_200_000) }] }));
  checkErrorObject(error);
  assert.equal(error.status, 413);
  const chunked = await fixture.molly.fetch('/v1/chat/completions', {
    method: 'POST', duplex: 'half', headers: { 'content-type': 'application/json' },
    body: new ReadableStream({ start(control) { for (let i = 0; i < 20; ++i) control.enqueue(new Uint8Array(65_536).fill(120)); control.close(); } }),
  }).catch((error) => error.cause ?? error);
  assert.ok(chunked.status === 413 || ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(chunked.code), `${chunked.status ?? chunked.code}`);
  assert.equal(fixture.upstream.requests.length, 0);
});

scenario('headers over the limit are refused', async () => {
  const answer = await fixture.molly.post('/v1/chat/completions', ask, { 'x-long': 'x'.repeat(15_000), 'x-longer': 'x'.repeat(15_000) }).catch((error) => error.cause ?? error);
  assert.ok(answer.status === 431 || ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(answer.code), `${answer.status ?? answer.code}`);
});

scenario('an unknown path and a wrong method are said to be that', async () => {
  assert.equal((await fixture.molly.post('/v1/nothing', {})).status, 404);
  const answer = await fixture.molly.fetch('/v1/chat/completions');
  assert.equal(answer.status, 405);
  assert.equal(typeof (await answer.json()).error.message, 'string');
});

for (const [name, behaviour] of [
  ['a reset', resetInStream(3)], ['a closed connection', closeInStream(3)], ['a stall', stallInStream(3)],
  ['an error event', errorEvent(3)],
]) {
  scenario(`${name} after the first token raises an error, never a silent end`, async () => {
    fixture.upstream.answer(behaviour);
    const words = [];
    const error = await failureOf((async () => {
      for await (const one of await create(fixture.client, { stream: true })) words.push(one.choices[0]?.delta.content ?? '');
    })());
    assert.equal(words.join(''), 'word0 word1 word2 ', 'what came before the failure is delivered');
    assert.ok(error instanceof OpenAI.APIError, `${error}`);
    assert.ok(error.error.message.length > 10 && error.error.type, JSON.stringify(error.error));
  });
}

scenario('a failed stream does not end in DONE', async () => {
  fixture.upstream.answer(resetInStream(2));
  const text = await (await fixture.molly.post('/v1/chat/completions', { ...ask, stream: true })).text();
  assert.match(text, /"error"/);
  assert.doesNotMatch(text, /\[DONE\]/);
});

scenario('a target that never answers is a timeout, at its deadline', async () => {
  fixture.upstream.answer((exchange) => exchange.stall());
  const started = performance.now();
  const error = await failureOf(create(fixture.client, { model: 'hasty' }));
  checkErrorObject(error);
  assert.ok([502, 503, 504].includes(error.status), `${error.status}`);
  assert.ok(performance.now() - started < 10_000);
  assert.notEqual(fixture.upstream.last.disconnectedAt, null, 'the stalled connection is given up');
});

scenario('every answer carries a request id, also errors and streams', async () => {
  const good = await create().withResponse();
  const bad = await failureOf(create(fixture.client, { model: 'no-such-model' }));
  fixture.upstream.answer(textStream(['x']));
  const streamed = await create(fixture.client, { stream: true }).withResponse();
  await gather(streamed.data);
  const ids = [good.request_id, bad.requestID, streamed.request_id];
  assert.ok(ids.every((id) => typeof id === 'string' && id.length >= 8), `${ids}`);
  assert.equal(new Set(ids).size, 3);
});

scenario('a header line that is none is refused without harm to the next request', async () => {
  const net = await import('node:net');
  const { hostname, port } = new URL(fixture.molly.url);
  for (const bytes of ['GARBAGE\r\n\r\n', 'GET / HTTP/1.1\r\nbad header\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00\x01',
    'POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n']) {
    const answer = await new Promise((resolve) => {
      let text = '';
      const socket = net.connect(Number(port), hostname, () => socket.write(bytes, 'latin1'));
      socket.on('data', (data) => (text += data));
      socket.on('close', () => resolve(text));
      socket.on('error', () => resolve(text));
      socket.setTimeout(3000, () => socket.destroy());
    });
    assert.ok(answer === '' || /^HTTP\/1\.1 4\d\d /.test(answer), answer.slice(0, 100));
  }
  assert.equal((await create()).choices[0].finish_reason, 'stop');
});
