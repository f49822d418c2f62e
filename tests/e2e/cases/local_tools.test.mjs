// A model on this device whose template calls tools, served by molly-engine, through Molly with the official client.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before } from 'node:test';
import { nano } from '../engine_process.mjs';
import { writeWithTemplate } from '../gguf.mjs';
import { Molly, scenario as plain, temporaryFolder, top } from '../harness.mjs';

const folder = temporaryFolder('local-tools');
let molly;
before(async () => {
  const file = path.join(folder, 'caller.gguf');
  writeWithTemplate(file, nano, fs.readFileSync(path.join(top, 'tests/engine/templates/qwen3_thinking.jinja'), 'utf8'));
  molly = await Molly.start({ config: '[models]\nthreads = 1\n' });
  const added = await molly.run(['models', 'add', file]);
  assert.equal(added.code, 0, added.stderr);
});
after(async () => {
  await molly?.remove();
  fs.rmSync(folder, { recursive: true, force: true });
});
const scenario = (name, body) => plain(name, { molly: () => molly, timeout: 120_000 }, body);
const completions = () => molly.client({ timeout: 60_000, maxRetries: 2 }).chat.completions;

const lamp = {
  type: 'function',
  function: { name: 'set_lamp', description: 'Turns the lamp on or off', strict: true, parameters: { type: 'object', properties: { on: { type: 'boolean' } }, required: ['on'], additionalProperties: false } },
};
const messages = [{ role: 'user', content: 'Light, please.' }];
const ask = { model: 'caller', messages, tools: [lamp], tool_choice: 'required', parallel_tool_calls: false, max_tokens: 300, temperature: 0, chat_template_kwargs: { enable_thinking: false } };

scenario('the model is molly-engine\'s, and says that it calls tools', async () => {
  const { models } = await molly.runJson(['models', 'list']);
  assert.equal(models.find((one) => one.name === 'caller').runtime, 'molly-engine');
});

scenario('a required call comes whole and streamed, and its result is answered', async () => {
  const { choices: [{ message, finish_reason }] } = await completions().create(ask);
  assert.equal(finish_reason, 'tool_calls');
  const [call] = message.tool_calls;
  assert.equal(call.function.name, 'set_lamp');
  assert.equal(typeof JSON.parse(call.function.arguments).on, 'boolean');
  const final = await completions().stream(ask).finalChatCompletion();
  assert.deepEqual(final.choices[0].message.tool_calls.map((one) => one.function.arguments), [call.function.arguments]);
  const answer = await completions().create({ ...ask, tool_choice: 'auto', max_tokens: 8, messages: [...messages, message, { role: 'tool', tool_call_id: call.id, content: 'done' }] });
  assert.ok(answer.choices[0].message.content.length > 0);
});

scenario('reasoning comes apart from content', async () => {
  const { choices: [{ message }] } = await completions().create({ model: 'caller', messages, max_tokens: 8 });
  assert.ok(message.reasoning_content.length > 0);
  assert.ok(!message.content);
});
