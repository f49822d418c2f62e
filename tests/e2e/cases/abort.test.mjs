// A client that leaves frees its upstream.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { endlessStream } from '../answers.mjs';
import { withUpstream } from '../fixture.mjs';
import { failureOf, target, within } from '../harness.mjs';

const fixture = withUpstream((upstream) => `
[server]
write_seconds = 2
${target('up', upstream.url, { first_byte_seconds: 60, concurrency: 2 })}`);
const { scenario } = fixture;
const ask = { model: 'up', messages: [{ role: 'user', content: 'Say hello.' }] };
const FREED = 2000; // milliseconds: far below every deadline of the target

scenario('aborting a stream ends the upstream\'s request', async () => {
  fixture.upstream.answer(endlessStream());
  const stream = await fixture.client.chat.completions.create({ ...ask, stream: true });
  let seen = 0;
  for await (const _ of stream) if (++seen === 5) stream.controller.abort();
  await within(FREED, fixture.upstream.last.disconnected, 'the disconnect to reach the upstream');
  assert.notEqual(fixture.upstream.last.disconnectedAt, null);
});

scenario('leaving the loop ends the upstream\'s request', async () => {
  fixture.upstream.answer(endlessStream());
  for await (const one of await fixture.client.chat.completions.create({ ...ask, stream: true })) if (one.choices[0].delta.content) break;
  await within(FREED, fixture.upstream.last.disconnected, 'the disconnect to reach the upstream');
});

scenario('aborting before the first token ends the upstream\'s request', async () => {
  for (const stream of [true, false]) {
    fixture.upstream.clear().answer((exchange) => exchange.stall());
    const control = new AbortController();
    const failed = failureOf(fixture.client.chat.completions.create({ ...ask, stream }, { signal: control.signal }));
    const request = await within(5000, fixture.upstream.received(), 'the request to reach the upstream');
    control.abort();
    assert.ok((await failed) instanceof OpenAI.APIUserAbortError);
    await within(FREED, request.disconnected, `the disconnect to reach the upstream (stream: ${stream})`);
  }
});

scenario('the client\'s own timeout ends the upstream\'s request', async () => {
  fixture.upstream.answer((exchange) => exchange.stall());
  const error = await failureOf(fixture.client.chat.completions.create(ask, { timeout: 300 }));
  assert.ok(error instanceof OpenAI.APIConnectionTimeoutError, `${error}`);
  await within(FREED, fixture.upstream.last.disconnected, 'the disconnect to reach the upstream');
});

scenario('aborted requests give their slots back', async () => {
  // The target serves two at a time: were slots lost, the last request would be turned away.
  fixture.upstream.answer(endlessStream());
  for (let i = 0; i < 8; ++i) {
    const stream = await fixture.client.chat.completions.create({ ...ask, stream: true });
    for await (const _ of stream) break;
    await within(FREED, fixture.upstream.last.disconnected, 'the disconnect to reach the upstream');
  }
  fixture.upstream.clear();
  const answer = await fixture.molly.client({ maxRetries: 3 }).chat.completions.create(ask);
  assert.equal(answer.choices[0].finish_reason, 'stop');
});

scenario('a client that stops reading does not make the server gather the stream', async () => {
  const net = await import('node:net');
  const { hostname, port } = new URL(fixture.molly.url);
  const word = 'x'.repeat(16_384);
  let sent = 0;
  let heldBack = false;
  fixture.upstream.answer(async (exchange) => {
    exchange.head(200, { 'content-type': 'text/event-stream' });
    while (!exchange.gone && !heldBack && sent < 256 * 1024 * 1024) {
      exchange.event({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: word }, finish_reason: null }] });
      sent += word.length;
      if (!exchange.socket.writableNeedDrain) continue;
      const drained = new Promise((resolve) => exchange.socket.once('drain', () => resolve(true)));
      heldBack = !(await Promise.race([drained, exchange.sleep(1000)]));
    }
    await exchange.stall();
  });
  const body = JSON.stringify({ ...ask, stream: true });
  const socket = net.connect(Number(port), hostname);
  socket.pause();
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  const request = await within(5000, fixture.upstream.received(), 'the request to reach the upstream');
  await within(25_000, request.disconnected, 'giving up the client that reads nothing');
  socket.destroy();
  assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were taken from the target for a client that reads nothing`);
});
