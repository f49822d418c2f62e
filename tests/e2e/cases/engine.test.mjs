// molly-engine as a program: the embedded model over its own HTTP interface on a unix socket.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EngineProcess } from '../engine_process.mjs';
import { until } from '../harness.mjs';

let engine;
const call = (...request) => engine.call(...request);
const chat = (more) => engine.chat(more);
const metric = (name) => engine.metric(name);

before(async () => (engine = await EngineProcess.start()));
after(async () => {
  // A second signal ends what still runs: several generations at once.
  const running = Array.from({ length: 5 }, () => chat({ max_tokens: 100_000, ignore_eos: true, stream: true }).catch(() => {}));
  await until(async () => (await metric('running')) > 1, 'several to run').catch(() => {});
  assert.equal(await engine.stop(), 0, engine.log);
  await Promise.all(running);
});

test('chats, and counts what it did', async () => {
  const answer = (await chat()).json();
  assert.ok(answer.choices[0].message.content.length > 0);
  assert.ok(answer.usage.prompt_tokens > 0 && answer.usage.completion_tokens > 0);
  assert.ok(answer.timings.predicted_per_second > 0);
});

test('tells the confidence in every token of a whole answer, and of each piece of a stream', async () => {
  const whole = (await chat({ confidence: true, max_tokens: 8, ignore_eos: true })).json();
  const { tokens, mean, lowest } = whole.choices[0].confidence;
  assert.equal(tokens.length, whole.usage.completion_tokens);
  assert.ok(tokens.every((one) => one.probability > 0 && one.probability <= 1));
  assert.ok(Math.abs(mean - tokens.reduce((sum, one) => sum + one.probability, 0) / tokens.length) < 1e-6);
  assert.equal(lowest, Math.min(...tokens.map((one) => one.probability)));
  const { text } = await chat({ confidence: true, max_tokens: 8, ignore_eos: true, stream: true });
  const events = text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
  const told = events.flatMap((event) => event.choices?.[0]?.confidence?.tokens ?? []);
  assert.deepEqual(told, tokens);
});

test('streams the same text as it answers whole', async () => {
  const whole = (await chat()).json().choices[0].message.content;
  const { text } = await chat({ stream: true });
  const chunks = text.split('\n\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
  assert.equal(chunks.map((one) => one.choices[0]?.delta?.content ?? '').join(''), whole);
  assert.ok(text.endsWith('data: [DONE]\n\n'));
});

test('log-probabilities are told without alternatives too', async () => {
  const { content } = (await chat({ logprobs: true })).json().choices[0].logprobs;
  assert.ok(content.length > 0);
  assert.ok(content.every((one) => one.logprob < 0 && one.top_logprobs.length === 0));
});

test('drafting changes nothing at temperature zero', async () => {
  const messages = [{ role: 'user', content: 'one two three one two three one two three' }];
  const plain = (await chat({ messages, max_tokens: 40 })).json();
  const drafted = (await chat({ messages, max_tokens: 40, drafting: 'ngram' })).json();
  assert.equal(drafted.choices[0].message.content, plain.choices[0].message.content);
});

test('with the same seed drafting changes nothing at any temperature', async () => {
  const ask = async (drafting) => (await chat({ drafting, messages: [{ role: 'user', content: 'one two three one two three' }], max_tokens: 40, temperature: 1.2, seed: 7 })).json();
  const plain = await ask('off');
  assert.deepEqual(plain.timings.drafts, {});
  for (const drafting of ['auto', 'ngram', 'model', 'base']) assert.equal((await ask(drafting)).choices[0].message.content, plain.choices[0].message.content);
});

// The streamed tokens of one answer, with what each chunk brought told to `onTokens`.
async function streamTokens(body, onTokens = () => {}) {
  const answer = await new Promise((resolve, reject) => engine.request('POST', '/v1/completions', {}, resolve).on('error', reject).end(JSON.stringify({ ...body, stream: true, return_tokens: true, stream_options: { include_usage: true } })));
  const out = { tokens: [], timings: null };
  let rest = '';
  for await (const bytes of answer.setEncoding('utf8')) {
    const lines = (rest + bytes).split('\n');
    rest = lines.pop();
    for (const line of lines.filter((one) => one.startsWith('data: {'))) {
      const chunk = JSON.parse(line.slice(6));
      out.timings = chunk.timings ?? out.timings;
      out.tokens.push(...(chunk.choices?.[0]?.tokens ?? []));
      await onTokens(out.tokens);
    }
  }
  return out;
}

test('guesses may be sent while the answer is made, and are counted by source', async () => {
  const { tokens: prompt } = (await call('POST', '/tokenize', { content: 'A story about a fox and a hen.' })).json();
  const body = { prompt, max_tokens: 60, temperature: 0, ignore_eos: true };
  const plain = await streamTokens({ ...body, drafting: 'off' });
  let sent = false;
  const push = async (tokens) => {
    if (sent || tokens.length === 0) return;
    sent = true;
    const answer = await call('POST', '/drafts', { channel: 'fox', position: prompt.length + tokens.length, tokens: plain.tokens.slice(tokens.length) });
    assert.equal(answer.status, 200);
  };
  const drafted = await streamTokens({ ...body, drafting: 'pushed', draft_channel: 'fox' }, push);
  assert.deepEqual(drafted.tokens, plain.tokens);
  assert.ok(drafted.timings.drafts.pushed.n_accepted > 5, JSON.stringify(drafted.timings));
  assert.match((await call('GET', '/metrics')).text, /^molly_engine_accepted_tokens_total\{source="pushed"\} [1-9]/m);
});

test('guesses for nobody, and none that are tokens', async () => {
  assert.equal((await call('POST', '/drafts', { channel: 'nobody', position: 3, tokens: [1, 2] })).status, 200);
  for (const body of [{ channel: 'fox', position: 3, tokens: [-1] }, { channel: 'fox', position: 3, tokens: [1e9] }, { channel: 'fox', colour: 1 }, { channel: 7 }]) {
    assert.equal((await call('POST', '/drafts', body)).status, 400);
  }
});

test('tokens are returned in streams only', async () => {
  assert.match((await chat({ return_tokens: true })).json().error.message, /streams/);
});

test('a JSON schema binds the output', async () => {
  const schema = { type: 'object', additionalProperties: false, required: ['mood'], properties: { mood: { enum: ['calm', 'busy'] } } };
  const answer = await chat({ max_tokens: 60, response_format: { type: 'json_schema', json_schema: { name: 'state', schema } } });
  assert.ok(['calm', 'busy'].includes(JSON.parse(answer.json().choices[0].message.content).mood));
});

test('a stop string ends the answer before itself', async () => {
  const whole = (await chat()).json().choices[0].message.content;
  const stop = whole.trim().slice(3, 6);
  const cut = (await chat({ stop: [stop] })).json();
  assert.equal(cut.choices[0].message.content, whole.slice(0, whole.indexOf(stop)));
  assert.equal(cut.choices[0].finish_reason, 'stop');
});

test('tokenize, detokenize and count agree', async () => {
  const { tokens } = (await call('POST', '/tokenize', { content: 'Hello there' })).json();
  assert.equal((await call('POST', '/detokenize', { tokens })).json().content, 'Hello there');
  const body = { messages: [{ role: 'user', content: 'Hello there' }] };
  const { input_tokens: counted } = (await call('POST', '/v1/chat/completions/input_tokens', body)).json();
  assert.equal((await chat(body)).json().usage.prompt_tokens, counted);
});

test('embeddings have length one, and alike texts are nearer', async () => {
  const { data } = (await call('POST', '/v1/embeddings', { input: ['hello', 'hello', 'a quite different text'] })).json();
  const inner = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const [one, same, other] = data.map((item) => item.embedding);
  assert.ok(Math.abs(inner(one, one) - 1) < 1e-3);
  assert.ok(inner(one, same) > inner(one, other));
});

test('what it does not know is an error, with the name', async () => {
  for (const [more, name] of [[{ colour: 'red' }, /colour/], [{ adapter: 'nobody' }, /nobody/], [{ tools: [{ type: 'function', function: { name: 'f' } }] }, /tools/], [{ drafting: 'often' }, /drafting/]]) {
    const answer = await chat(more);
    assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status}`);
    assert.match(answer.json().error.message, name);
  }
  assert.equal((await call('POST', '/adapters', { name: 'a', path: '/nonexistent.gguf' })).status, 400);
});

test('a prompt that is too long is a typed error', async () => {
  const answer = await chat({ messages: [{ role: 'user', content: 'many words '.repeat(20_000) }] });
  assert.equal(answer.status, 400);
  assert.equal(answer.json().error.code, 'context_length_exceeded');
});

test('without the key nothing but its health is told', async () => {
  assert.equal((await call('GET', '/metrics', undefined, { authorization: 'Bearer wrong' })).status, 401);
  assert.equal((await call('GET', '/health', undefined, { authorization: 'Bearer wrong' })).status, 200);
});

test('many at once are all answered, and no page is lost', async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => chat({ messages: [{ role: 'user', content: `Say hello to number ${i}.` }], temperature: 1, seed: i })));
  assert.ok(answers.every((one) => one.status === 200));
  assert.equal(await metric('running'), 0);
  assert.equal(await metric('free_pages'), await metric('pages'));
});

test('a client that leaves frees its place', async () => {
  const request = engine.request('POST', '/v1/chat/completions', {});
  request.on('error', () => {});
  request.end(JSON.stringify({ messages: [{ role: 'user', content: 'Count.' }], max_tokens: 100_000, ignore_eos: true, stream: true }));
  await until(async () => (await metric('running')) === 1, 'it to run').catch(() => {});
  request.destroy();
  await until(async () => (await metric('running')) === 0, 'it to be freed');
});
