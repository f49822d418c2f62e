// What a model on this device can do, whichever program serves it: registered by test files in cases/.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import OpenAI from 'openai';
import { alive, failureOf, gather, Molly, scenario as plain, until, within } from './harness.mjs';

/** Registers the cases; `config` is the configuration's text, `runtime` the name of the program it leads to. */
export function localModelCases({ config, runtime }) {
  let molly;
  const scenario = (name, body) => plain(name, { molly: () => molly, timeout: 180_000 }, body);
  before(async () => (molly = await Molly.start({ config })));
  after(() => molly?.remove());
  const messages = [{ role: 'user', content: 'Say hello.' }];
  const client = () => molly.client({ timeout: 90_000, maxRetries: 2 });

  scenario('with nothing configured the embedded model answers', async () => {
    const { data, response } = await client().chat.completions.create({ model: 'auto', messages, max_tokens: 8 }).withResponse();
    assert.equal(data.choices[0].message.role, 'assistant');
    assert.ok(data.choices[0].message.content.length > 0);
    assert.ok(data.usage.prompt_tokens > 0 && data.usage.completion_tokens > 0 && data.usage.completion_tokens <= 8);
    assert.ok(['stop', 'length'].includes(data.choices[0].finish_reason));
    assert.match(response.headers.get('x-molly-route'), /nano/);
  });

  scenario('who starts the server sees where it listens, how to call it and when the model is ready', async () => {
    await until(() => /nano is ready after [\d.]+ (ms|s)/.test(molly.log()), 'the model to be announced');
    const shown = molly.log();
    assert.ok(shown.includes(`listens on ${molly.url}\n`), shown);
    assert.ok(shown.includes(`base URL ${molly.url}/v1, model "auto"`), shown);
    assert.match(shown, /^ {2}nano +T0 {2}device +(cold|ready)/m);
    assert.ok(!shown.includes('\r'), 'no bar where there is no terminal');
    const [, curl] = /^ {2}curl +(curl [^]*?}')$/m.exec(shown);
    const { execFileSync } = await import('node:child_process');
    const answer = JSON.parse(execFileSync('sh', ['-c', `${curl} -sS --max-time 60`], { encoding: 'utf8' }));
    assert.ok(answer.choices[0].message.content.length > 0);
  });

  scenario('the embedded model streams with usage', async () => {
    const stream = await client().chat.completions.create({ model: 'nano', messages, max_tokens: 12, stream: true, stream_options: { include_usage: true } });
    const { chunks, text } = await gather(stream);
    assert.ok(text.length > 0);
    assert.ok(chunks.length > 3, 'it came in pieces');
    assert.ok(chunks.at(-1).usage.completion_tokens > 0);
  });

  scenario('the same seed at temperature zero gives the same text, streamed or not', async () => {
    const body = { model: 'nano', messages, max_tokens: 10, temperature: 0, seed: 7 };
    const whole = await client().chat.completions.create(body);
    const { text } = await gather(await client().chat.completions.create({ ...body, stream: true }));
    assert.equal(text, whole.choices[0].message.content);
  });

  scenario('log-probabilities come from the model', async () => {
    const answer = await client().chat.completions.create({ model: 'nano', messages, max_tokens: 3, logprobs: true, top_logprobs: 2 });
    assert.ok(answer.choices[0].logprobs.content.length >= 1);
    assert.ok(answer.choices[0].logprobs.content[0].logprob <= 0);
  });

  scenario('a JSON schema binds the model\'s output', async () => {
    const schema = {
      type: 'object', additionalProperties: false, required: ['mood', 'count', 'tags'],
      properties: { mood: { enum: ['calm', 'busy'] }, count: { type: 'integer', minimum: 0, maximum: 99 }, tags: { type: 'array', minItems: 1, maxItems: 2, items: { enum: ['a', 'b'] } } },
    };
    for (const stream of [false, true]) {
      const asked = { model: 'nano', messages, max_tokens: 400, temperature: 0, response_format: { type: 'json_schema', json_schema: { name: 'state', strict: true, schema } } };
      const text = stream ? (await gather(await client().chat.completions.create({ ...asked, stream }))).text : (await client().chat.completions.create(asked)).choices[0].message.content;
      const value = JSON.parse(text);
      assert.deepEqual(Object.keys(value).sort(), ['count', 'mood', 'tags']);
      assert.ok(['calm', 'busy'].includes(value.mood) && Number.isInteger(value.count) && value.tags.every((one) => ['a', 'b'].includes(one)), text);
    }
  });

  scenario('tools that the model\'s template cannot render are an error, not ignored', async () => {
    const tools = [{ type: 'function', function: { name: 'set_light', parameters: { type: 'object', properties: { on: { type: 'boolean' } } } } }];
    const error = await failureOf(client().chat.completions.create({ model: 'nano', messages, tools, tool_choice: 'required' }));
    assert.ok(error instanceof OpenAI.BadRequestError, `${error.status} ${error}`);
    assert.match(error.message, /nano: it does not call tools/);
  });

  scenario('a role that the model\'s template cannot render is an error, not dropped', async () => {
    const error = await failureOf(client().chat.completions.create({ model: 'nano', messages: [{ role: 'oracle', content: 'The answer is 42.' }, ...messages], max_tokens: 4 }));
    assert.ok(error instanceof OpenAI.BadRequestError, `${error.status} ${error}`);
    assert.match(error.message, /oracle|role/);
  });

  scenario('a prompt that does not fit is a typed error, never a cut', async () => {
    const error = await failureOf(client().chat.completions.create({ model: 'nano', messages: [{ role: 'user', content: 'many words '.repeat(100_000) }], max_tokens: 4 }));
    assert.equal(error.status, 400);
    assert.equal(error.code, 'context_length_exceeded');
    assert.match(error.message, /the prompt has \d{5,} tokens, and the context of nano holds \d+/);
    const record = await molly.runJson(['explain', error.headers.get('x-molly-trace')]);
    assert.ok(record.capability.exact_tokens > 50_000);
    assert.deepEqual(record.attempts.map((one) => one.outcome), ['too_long']);
  });

  for (const endpoint of ['chat', 'completions']) {
    scenario(`a prompt whose bytes do not fit but whose tokens do is counted and answered: ${endpoint}`, async () => {
      const { targets } = await molly.runJson(['status']);
      const context = targets.find((one) => one.name === 'nano').context_length;
      const text = 'hello there '.repeat(Math.ceil(context / 9));
      const body = { model: 'nano', max_tokens: 2, ...(endpoint === 'chat' ? { messages: [{ role: 'user', content: text }] } : { prompt: text }) };
      const api = endpoint === 'chat' ? client().chat.completions : client().completions;
      const { data, response } = await api.create(body).withResponse();
      assert.ok(text.length > context, 'the bound does not fit');
      const record = await molly.runJson(['explain', response.headers.get('x-molly-trace')]);
      assert.equal(record.capability.exact_tokens, data.usage.prompt_tokens);
      assert.ok(record.capability.token_upper_bound > context);
    });
  }

  scenario('an image for a model without eyes is refused with the reason', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
    const error = await failureOf(client().chat.completions.create({ model: 'nano', messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, image] }], max_tokens: 4 }));
    assert.ok(error.status >= 400 && error.status < 500, `${error.status}`);
    assert.match(error.message, /image/);
  });

  scenario('requests at the same time are all answered', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => client().chat.completions.create({ model: 'nano', messages, max_tokens: 6 })));
    assert.ok(answers.every((one) => one.choices[0].message.content.length > 0));
  });

  scenario('legacy completions work on the embedded model', async () => {
    const answer = await client().completions.create({ model: 'nano', prompt: 'Once upon a time', max_tokens: 5 });
    assert.equal(answer.object, 'text_completion');
    assert.ok(answer.choices[0].text.length > 0);
  });

  scenario('a model server that is killed mid-stream gives a typed error and the next request succeeds', async () => {
    const stream = await client().chat.completions.create({ model: 'nano', messages: [{ role: 'user', content: 'Count to a thousand.' }], max_tokens: 900, ignore_eos: true, stream: true });
    let seen = 0;
    let killedAt = 0;
    const error = await failureOf((async () => {
      for await (const one of stream) {
        if (one.choices[0]?.delta.content && ++seen === 2) {
          killedAt = performance.now();
          for (const pid of molly.modelServers()) process.kill(pid, 'SIGKILL');
        }
      }
    })());
    assert.ok(killedAt > 0, `the model ended before it could be killed: ${error}`);
    assert.ok(error instanceof OpenAI.APIError, `${error}`);
    assert.ok(performance.now() - killedAt < 1000, 'the error came within a second');
    const next = await client().chat.completions.create({ model: 'nano', messages, max_tokens: 4 });
    assert.ok(next.choices[0].message.content.length > 0);
  });

  scenario('a model server that is killed under a hundred requests harms none for longer than itself', async () => {
    const patient = molly.client({ timeout: 60_000, maxRetries: 0 });
    const ask = (i) => patient.chat.completions.create({ model: 'nano', messages: [{ role: 'user', content: `Request ${i}.` }], max_tokens: 24, ignore_eos: true, stream: true });
    let answering = 0;
    const outcomes = Array.from({ length: 100 }, async (_, i) => {
      try {
        for await (const one of await ask(i)) if (one.choices[0]?.delta.content) answering += 1;
        return 'answered';
      } catch (error) {
        return error;
      }
    });
    await until(() => answering > 10, 'answers to have begun', 60_000);
    for (const pid of molly.modelServers()) process.kill(pid, 'SIGKILL');
    const ended = await within(110_000, Promise.all(outcomes), 'all hundred');
    for (const outcome of ended) assert.ok(outcome === 'answered' || outcome instanceof OpenAI.APIError, `${outcome}`);
    const next = await client().chat.completions.create({ model: 'nano', messages, max_tokens: 4 });
    assert.ok(next.choices[0].message.content.length > 0);
  });

  scenario('the model survives a crash of the control plane', async () => {
    await client().chat.completions.create({ model: 'nano', messages, max_tokens: 2 });
    const servers = molly.modelServers();
    assert.equal(servers.length, 1);
    const victim = molly.controlPlane();
    process.kill(victim, 'SIGKILL');
    await until(() => molly.controlPlane() && molly.controlPlane() !== victim, 'another control plane');
    const answer = await molly.client({ timeout: 60_000, maxRetries: 5 }).chat.completions.create({ model: 'nano', messages, max_tokens: 2 });
    assert.ok(answer.choices[0].message.content.length > 0);
    assert.deepEqual(molly.modelServers(), servers, 'the same process answers');
  });

  scenario('the runtime that was chosen serves the model and is shown', async () => {
    await client().chat.completions.create({ model: 'nano', messages, max_tokens: 2 });
    const programs = molly.processes().map(({ command }) => command[0].split('/').at(-1));
    assert.ok(programs.includes(runtime), programs.join(' '));
    const { models } = await molly.runJson(['models', 'list']);
    const listed = models.find((one) => one.name === 'nano').runtime;
    if (!config) assert.equal(listed, runtime);
  });

  scenario('status, doctor and ask speak of the model', async () => {
    const status = await molly.run(['status', '--json']);
    assert.equal(status.code, 0, status.stderr);
    JSON.parse(status.stdout);
    assert.match(status.stdout, /nano/);
    const asked = await molly.run(['ask', 'Say hello.'], { timeout: 60_000 });
    assert.equal(asked.code, 0, asked.stderr);
    assert.ok(asked.stdout.trim().length > 0);
    const piped = await molly.run(['ask', 'Summarise this.'], { input: 'A short text.', timeout: 60_000 });
    assert.equal(piped.code, 0, piped.stderr);
    const doctor = await molly.run(['doctor', '--json']);
    assert.ok([0, 1].includes(doctor.code), doctor.stderr);
    JSON.parse(doctor.stdout);
  });

  scenario('a stop with an open stream leaves no process behind', async () => {
    const own = await Molly.start({ config: `${config}[server]\ndrain_seconds = 1\n` });
    const stream = await own.client({ timeout: 60_000 }).chat.completions.create({ model: 'nano', messages, max_tokens: 2000, stream: true });
    for await (const _ of stream) break;
    const processes = own.processes().map((one) => one.pid);
    await within(15_000, own.stop(), 'the stop');
    assert.ok(!own.overdue, 'SIGTERM was enough');
    await until(() => processes.every((pid) => !alive(pid)), 'all children to end', 5000);
    await own.remove();
  });
}
