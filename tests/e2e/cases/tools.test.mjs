// Tool calls and structured output against the scripted upstream.
import assert from 'node:assert/strict';
import { chunk, choice, completion, message, streamOf, whole } from '../answers.mjs';
import { withUpstream } from '../fixture.mjs';
import { gather } from '../harness.mjs';

const fixture = withUpstream();
const { scenario } = fixture;
const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Weather of a place', parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] } },
};
const ask = { model: 'up', messages: [{ role: 'user', content: 'Weather?' }], tools: [weather] };
const call = (index, delta) => ({ tool_calls: [{ index, ...delta }] });

scenario('parallel tool calls in a whole answer keep ids, names and arguments', async () => {
  const tool_calls = [
    { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"place":"Oslo"}' } },
    { id: 'call_b', type: 'function', function: { name: 'weather', arguments: '{"place": "Bergen"}' } },
  ];
  fixture.upstream.answer(whole(completion('', { choices: [{ index: 0, message: message(null, { tool_calls }), logprobs: null, finish_reason: 'tool_calls' }] })));
  const answer = await fixture.client.chat.completions.create(ask);
  assert.equal(answer.choices[0].finish_reason, 'tool_calls');
  assert.equal(answer.choices[0].message.content, null);
  assert.deepEqual(answer.choices[0].message.tool_calls, tool_calls);
  assert.deepEqual(fixture.upstream.last.json().tools, [weather]);
});

scenario('interleaved argument fragments of parallel calls assemble', async () => {
  fixture.upstream.answer(streamOf([
    chunk(choice({ role: 'assistant', content: null })),
    chunk(choice(call(0, { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }))),
    chunk(choice(call(1, { id: 'call_b', type: 'function', function: { name: 'weather', arguments: '' } }))),
    chunk(choice(call(0, { function: { arguments: '{"pla' } }))),
    chunk(choice(call(1, { function: { arguments: '{"place":' } }))),
    chunk(choice(call(0, { function: { arguments: 'ce":"Oslo"}' } }))),
    chunk(choice(call(1, { function: { arguments: '"Ber\\"gen"}' } }))),
    chunk(choice({}, { finish: 'tool_calls' })),
  ]));
  const { chunks } = await gather(await fixture.client.chat.completions.create({ ...ask, stream: true }));
  const assembled = {};
  for (const delta of chunks.flatMap((one) => one.choices[0].delta.tool_calls ?? [])) {
    const one = (assembled[delta.index] ??= { arguments: '' });
    if (delta.id) one.id = delta.id;
    if (delta.function?.name) one.name = delta.function.name;
    one.arguments += delta.function?.arguments ?? '';
  }
  assert.deepEqual(assembled, {
    0: { id: 'call_a', name: 'weather', arguments: '{"place":"Oslo"}' },
    1: { id: 'call_b', name: 'weather', arguments: '{"place":"Ber\\"gen"}' },
  });
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
});

scenario('the client\'s own assembly of streamed tool calls works', async () => {
  fixture.upstream.answer(streamOf([
    chunk(choice({ role: 'assistant', content: null })),
    chunk(choice(call(0, { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"place"' } }))),
    chunk(choice(call(0, { function: { arguments: ':"Oslo"}' } }))),
    chunk(choice({}, { finish: 'tool_calls' })),
  ]));
  const final = await fixture.client.chat.completions.stream(ask).finalChatCompletion();
  const [made] = final.choices[0].message.tool_calls;
  assert.deepEqual([made.id, made.function.name, made.function.arguments], ['call_a', 'weather', '{"place":"Oslo"}']);
});

scenario('every form of tool choice reaches the target', async () => {
  for (const tool_choice of ['none', 'auto', 'required', { type: 'function', function: { name: 'weather' } }]) {
    await fixture.client.chat.completions.create({ ...ask, tool_choice, parallel_tool_calls: false });
    assert.deepEqual(fixture.upstream.last.json().tool_choice, tool_choice);
    assert.equal(fixture.upstream.last.json().parallel_tool_calls, false);
  }
});

scenario('a tool result and the call it answers reach the target as they were', async () => {
  const messages = [
    { role: 'user', content: 'Weather?' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"place":"Oslo"}' } }] },
    { role: 'tool', tool_call_id: 'call_a', content: '{"degrees": -3.0}' },
  ];
  await fixture.client.chat.completions.create({ ...ask, messages });
  assert.deepEqual(fixture.upstream.last.json().messages, messages);
});

scenario('the client\'s tool loop runs to its end', async () => {
  fixture.upstream.next(
    whole(completion('', {
      choices: [{
        index: 0, logprobs: null, finish_reason: 'tool_calls',
        message: message(null, { tool_calls: [{ id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"place":"Oslo"}' } }] }),
      }],
    })),
    whole(completion('Cold.')),
  );
  const places = [];
  const runner = fixture.client.chat.completions.runTools({
    ...ask,
    tools: [{ ...weather, function: { ...weather.function, parse: JSON.parse, function: ({ place }) => (places.push(place), 'minus three') } }],
  });
  assert.equal(await runner.finalContent(), 'Cold.');
  assert.deepEqual(places, ['Oslo']);
  assert.equal(fixture.upstream.last.json().messages.at(-1).content, 'minus three');
});

scenario('a response format reaches the target as it was and the client parses the answer', async () => {
  const response_format = {
    type: 'json_schema',
    json_schema: { name: 'place', strict: true, schema: { type: 'object', properties: { degrees: { type: 'number', minimum: -90.0 } }, required: ['degrees'], additionalProperties: false } },
  };
  fixture.upstream.answer(whole(completion('{"degrees":-3.5}')));
  const answer = await fixture.client.chat.completions.parse({ ...ask, tools: undefined, response_format });
  assert.deepEqual(fixture.upstream.last.json().response_format, response_format);
  assert.deepEqual(JSON.parse(answer.choices[0].message.content), { degrees: -3.5 });
});
