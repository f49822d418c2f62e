// molly-engine calls tools and tells reasoning apart, with the embedded model under templates of the usual families: the
// grammar makes calls certain, whatever the model would have said.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { EngineProcess, nano } from '../engine_process.mjs';
import { writeWithTemplate } from '../gguf.mjs';
import { temporaryFolder, top } from '../harness.mjs';

const FORMS = ['qwen_tools', 'llama3_tools', 'mistral_tools', 'mistral_args', 'qwen3_thinking'];
const weather = {
  type: 'function',
  function: {
    name: 'weather', description: 'The weather of a place', strict: true,
    parameters: { type: 'object', properties: { place: { enum: ['Paris', 'Rome'] }, days: { type: 'integer', minimum: 1, maximum: 9 } }, required: ['place', 'days'], additionalProperties: false },
  },
};
const time = { type: 'function', function: { name: 'time' } };
const tools = [weather, time];
const without_reasoning = { chat_template_kwargs: { enable_thinking: false } };
const required = { tools, tool_choice: 'required', parallel_tool_calls: false, max_tokens: 400, ...without_reasoning };

const folder = temporaryFolder('engine-tools');
const engines = {};
before(async () => {
  await Promise.all(FORMS.map(async (form) => {
    const model = path.join(folder, `${form}.gguf`);
    writeWithTemplate(model, nano, fs.readFileSync(path.join(top, `tests/engine/templates/${form}.jinja`), 'utf8'));
    engines[form] = await EngineProcess.start({ model });
  }));
});
after(async () => {
  for (const engine of Object.values(engines)) assert.equal(await engine.stop({ patience: 5000 }), 0, engine.log);
  fs.rmSync(folder, { recursive: true, force: true });
});

const choiceOf = async (engine, more) => {
  const answer = await engine.chat(more);
  assert.equal(answer.status, 200, answer.text);
  return answer.json().choices[0];
};

/** The chunks' deltas, and the message that they make. */
const streamed = async (engine, more) => {
  const { text } = await engine.chat({ ...more, stream: true });
  const choices = text.split('\n\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)).choices[0]);
  const message = { calls: [], content: '', reasoning: '' };
  for (const { delta } of choices) {
    message.content += delta.content ?? '';
    message.reasoning += delta.reasoning_content ?? '';
    for (const { index, id, function: { name, arguments: piece } } of delta.tool_calls ?? []) {
      message.calls[index] ??= { arguments: '', deltas: 0 };
      Object.assign(message.calls[index], id && { id }, name && { name });
      message.calls[index].arguments += piece;
      message.calls[index].deltas += 1;
    }
  }
  return { ...message, finish: choices.at(-1).finish_reason };
};

const expectAllowed = ({ name, arguments: json }) => {
  const given = JSON.parse(json);
  if (name === 'time') return assert.deepEqual(given, {});
  assert.equal(name, 'weather');
  assert.ok(['Paris', 'Rome'].includes(given.place) && Number.isInteger(given.days) && given.days >= 1 && given.days <= 9, json);
};

for (const form of FORMS) {
  test(`${form}: a required call is made, whole and streamed alike`, async () => {
    const choice = await choiceOf(engines[form], required);
    assert.equal(choice.finish_reason, 'tool_calls');
    assert.equal(choice.message.content, null);
    assert.equal(choice.message.tool_calls.length, 1);
    const [call] = choice.message.tool_calls;
    assert.equal(call.type, 'function');
    assert.match(call.id, form.startsWith('mistral') ? /^[a-zA-Z0-9]{9}$/ : /^call_[a-zA-Z0-9]{24}$/);
    expectAllowed(call.function);
    const stream = await streamed(engines[form], required);
    assert.equal(stream.finish, 'tool_calls');
    assert.deepEqual(stream.calls.map((call) => [call.name, call.arguments]), choice.message.tool_calls.map((call) => [call.function.name, call.function.arguments]));
    assert.ok(stream.calls.every((call) => call.id && (call.arguments.length < 12 || call.deltas > 1)));
  });

  test(`${form}: a named tool is called once, and drafting changes nothing`, async () => {
    const named = { ...required, tool_choice: { type: 'function', function: { name: 'weather' } } };
    const plain = (await choiceOf(engines[form], named)).message.tool_calls;
    assert.deepEqual(plain.map((call) => call.function.name), ['weather']);
    expectAllowed(plain[0].function);
    const drafted = (await choiceOf(engines[form], { ...named, drafting: 'ngram' })).message.tool_calls;
    assert.deepEqual(drafted.map((call) => call.function), plain.map((call) => call.function));
  });

  test(`${form}: the call and its result go back into the prompt`, async () => {
    const { tool_calls } = (await choiceOf(engines[form], required)).message;
    assert.equal(tool_calls.length, 1);
    const messages = [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: null, tool_calls },
      { role: 'tool', tool_call_id: tool_calls[0].id, content: '{"degrees": 21}' },
    ];
    const answer = await choiceOf(engines[form], { messages, tools, ...without_reasoning });
    assert.ok(answer.message.content.length > 0 && !answer.message.tool_calls);
    const { prompt } = (await engines[form].call('POST', '/apply-template', { messages, tools })).json();
    assert.ok(prompt.includes(tool_calls[0].function.name) && prompt.includes('21'), prompt);
  });
}

test('a stop string ends the content and never a call', async () => {
  const choice = await choiceOf(engines.qwen_tools, { ...required, stop: ['"', '}', 'tool_call'] });
  assert.equal(choice.finish_reason, 'tool_calls');
  choice.message.tool_calls.forEach((call) => expectAllowed(call.function));
});

test('several calls in one answer have ids and numbers of their own', async () => {
  const { calls } = await streamed(engines.mistral_args, { ...required, parallel_tool_calls: true });
  assert.ok(calls.length > 1, 'the embedded model goes on calling');
  assert.equal(new Set(calls.map((call) => call.id)).size, calls.length);
  calls.slice(0, -1).forEach(expectAllowed);
});

test('a call that the token limit cuts is told as far as it came', async () => {
  const choice = await choiceOf(engines.mistral_args, { ...required, tools: [weather], max_tokens: 24 });
  assert.equal(choice.finish_reason, 'length');
});

test('with a free choice a plain answer is content, as without tools', async () => {
  const plain = await choiceOf(engines.qwen_tools, { tools, ...without_reasoning });
  assert.ok(plain.message.content.length > 0 && !plain.message.tool_calls);
  assert.notEqual(plain.finish_reason, 'tool_calls');
});

test('with the choice none the model is not told of the tools', async () => {
  const prompt = async (more) => (await engines.qwen_tools.call('POST', '/apply-template', { messages: [{ role: 'user', content: 'Hi' }], ...more })).json().prompt;
  assert.match(await prompt({ tools }), /weather/);
  assert.equal(await prompt({ tools, tool_choice: 'none' }), await prompt({}));
});

test('a response format and tools: the answer is one or the other', async () => {
  const schema = { type: 'object', properties: { mood: { enum: ['calm', 'busy'] } }, required: ['mood'], additionalProperties: false };
  const { message } = await choiceOf(engines.qwen_tools, { tools, max_tokens: 200, response_format: { type: 'json_schema', json_schema: { name: 'state', schema } }, ...without_reasoning });
  if (message.tool_calls) return message.tool_calls.forEach((call) => expectAllowed(call.function));
  assert.ok(['calm', 'busy'].includes(JSON.parse(message.content).mood), message.content);
});

test('reasoning that the prompt begins is told apart from content', async () => {
  const { message } = await choiceOf(engines.qwen3_thinking, {});
  assert.ok(message.reasoning_content.length > 0);
  assert.equal(message.content, null);
  const stream = await streamed(engines.qwen3_thinking, {});
  assert.deepEqual([stream.reasoning, stream.content], [message.reasoning_content, '']);
});

test('a template that was told not to reason gives content alone', async () => {
  const { message } = await choiceOf(engines.qwen3_thinking, without_reasoning);
  assert.ok(message.content.length > 0);
  assert.equal(message.reasoning_content, undefined);
});

test('what cannot be kept to is a typed error, with the name', async () => {
  const broken = { type: 'function', function: { name: 'f', strict: true, parameters: { type: 'object', properties: { a: { not: {} } } } } };
  for (const [more, param] of [
    [{ tools: [broken] }, 'tools[0].function.parameters'],
    [{ tools, tool_choice: { type: 'function', function: { name: 'nobody' } } }, 'tool_choice'],
    [{ tool_choice: 'required' }, 'tool_choice'],
    [{ tools, tool_choice: { type: 'allowed_tools' } }, 'tool_choice'],
    [{ tools, grammar: 'root ::= "a"' }, 'grammar'],
    [{ tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'tools[0].type'],
  ]) {
    const answer = await engines.qwen_tools.chat(more);
    assert.equal(answer.status, 400, answer.text);
    assert.equal(answer.json().error.param, param, answer.text);
  }
  assert.equal((await engines.qwen_tools.chat({ tools: [{ type: 'function', function: { ...broken.function, strict: false } }], ...without_reasoning })).status, 200);
});
