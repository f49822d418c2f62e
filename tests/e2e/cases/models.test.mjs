// The model list, names, aliases, the legacy completions endpoint, and what the server tells of itself.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { completion, streamOf, whole } from '../answers.mjs';
import { withUpstream } from '../fixture.mjs';
import { closedPort } from '../upstream.mjs';
import { failureOf, target } from '../harness.mjs';

const fixture = withUpstream(async (upstream) => `
${target('up', upstream.url)}
${target('dead', `http://127.0.0.1:${await closedPort()}/v1`)}
[aliases]
fast = "up"
`);
const { scenario } = fixture;
const messages = [{ role: 'user', content: 'Say hello.' }];

scenario('the model list names targets, aliases and auto, and a dead target does not block it', async () => {
  const started = performance.now();
  const page = await fixture.client.models.list();
  const names = page.data.map((one) => one.id);
  for (const name of ['auto', 'up', 'dead', 'fast']) assert.ok(names.includes(name), `${name} is missing in ${names}`);
  for (const one of page.data) {
    assert.equal(one.object, 'model');
    assert.equal(typeof one.created, 'number');
    assert.equal(typeof one.owned_by, 'string');
  }
  assert.ok(performance.now() - started < 2000);
});

scenario('the model list can be iterated', async () => {
  const names = [];
  for await (const one of fixture.client.models.list()) names.push(one.id);
  assert.ok(names.includes('up'));
});

scenario('one model can be retrieved and an unknown one is not found', async () => {
  const model = await fixture.client.models.retrieve('up');
  assert.deepEqual([model.id, model.object], ['up', 'model']);
  const error = await failureOf(fixture.client.models.retrieve('nobody'));
  assert.ok(error instanceof OpenAI.NotFoundError, `${error}`);
});

scenario('an alias leads to its target', async () => {
  const { data, response } = await fixture.client.chat.completions.create({ model: 'fast', messages }).withResponse();
  assert.equal(data.choices[0].message.content, 'Hello from upstream.');
  assert.match(response.headers.get('x-molly-route'), /up/);
  assert.equal(fixture.upstream.last.json().model, 'scripted');
});

scenario('auto chooses a target by itself', async () => {
  // The label keeps the request off this device's own model, which would come first.
  for (const model of ['auto', 'molly']) {
    const { data, response } = await fixture.client.chat.completions.create({ model, messages }, { headers: { 'x-molly-zones': 'lan' } }).withResponse();
    assert.equal(data.choices[0].message.content, 'Hello from upstream.');
    assert.match(response.headers.get('x-molly-route'), /up/);
    assert.ok(response.headers.get('x-molly-trace'));
  }
});

const textAnswer = (text) => ({
  id: 'cmpl-upstream', object: 'text_completion', created: 1700000000, model: 'scripted',
  choices: [{ index: 0, text, logprobs: null, finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
});

scenario('the legacy completions endpoint answers', async () => {
  fixture.upstream.answer(whole(textAnswer(' world')));
  const answer = await fixture.client.completions.create({ model: 'up', prompt: 'Hello', max_tokens: 5, suffix: '!' });
  assert.equal(answer.object, 'text_completion');
  assert.equal(answer.choices[0].text, ' world');
  assert.equal(fixture.upstream.last.path, '/v1/completions');
  const sent = fixture.upstream.last.json();
  assert.deepEqual([sent.model, sent.prompt, sent.max_tokens, sent.suffix], ['scripted', 'Hello', 5, '!']);
});

scenario('the legacy completions endpoint streams', async () => {
  const piece = (text, finish_reason = null) => ({ ...textAnswer(''), usage: undefined, choices: [{ index: 0, text, logprobs: null, finish_reason }] });
  fixture.upstream.answer(streamOf([piece(' wor'), piece('ld'), piece('', 'stop')], { usage: false }));
  let text = '';
  let finish = null;
  for await (const one of await fixture.client.completions.create({ model: 'up', prompt: ['Hello'], stream: true })) {
    text += one.choices[0].text;
    finish = one.choices[0].finish_reason ?? finish;
  }
  assert.deepEqual([text, finish], [' world', 'stop']);
  assert.deepEqual(fixture.upstream.last.json().prompt, ['Hello']);
});

scenario('health, readiness and metrics answer without a key', async () => {
  for (const route of ['/health', '/ready']) assert.equal((await fixture.molly.fetch(route)).status, 200, route);
  await fixture.client.chat.completions.create({ model: 'up', messages });
  const metrics = await fixture.molly.fetch('/metrics');
  assert.match(metrics.headers.get('content-type'), /^text\/plain/);
  const text = await metrics.text();
  assert.match(text, /^# TYPE molly_\w+ (counter|histogram|gauge)$/m);
  assert.match(text, /^molly_\w+(\{[^}]*\})? [0-9.e+]+$/m);
  assert.ok(!text.includes('Say hello'), 'metrics hold no content');
});

scenario('a dead target is a typed error and is not tried for ever', async () => {
  const error = await failureOf(fixture.client.chat.completions.create({ model: 'dead', messages }));
  assert.ok([502, 503].includes(error.status), `${error.status}`);
  assert.match(error.message, /dead/);
});

scenario('the answer names the model that the client asked for or the target that answered', async () => {
  fixture.upstream.answer(whole(completion('x', { model: 'some-internal-path.gguf' })));
  const answer = await fixture.client.chat.completions.create({ model: 'up', messages });
  assert.equal(typeof answer.model, 'string');
  assert.ok(answer.model.length > 0);
});
