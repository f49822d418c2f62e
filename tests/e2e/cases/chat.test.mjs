// Chat completions through the official client: shapes of whole and streamed answers.
import assert from 'node:assert/strict';
import { chunk, choice, completion, message, streamOf, textChunks, textStream, whole } from '../answers.mjs';
import { withUpstream } from '../fixture.mjs';
import { gather } from '../harness.mjs';

const fixture = withUpstream();
const { scenario } = fixture;
const ask = { model: 'up', messages: [{ role: 'user', content: 'Say hello.' }] };

scenario('a whole answer has the shape of the dialect', async () => {
  fixture.upstream.answer(whole(completion('Hello.')));
  const answer = await fixture.client.chat.completions.create(ask);
  assert.equal(answer.object, 'chat.completion');
  assert.match(answer.id, /^chatcmpl-/);
  assert.equal(typeof answer.created, 'number');
  assert.equal(answer.choices.length, 1);
  assert.equal(answer.choices[0].index, 0);
  assert.deepEqual([answer.choices[0].message.role, answer.choices[0].message.content], ['assistant', 'Hello.']);
  assert.equal(answer.choices[0].finish_reason, 'stop');
  assert.deepEqual(answer.usage, { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 });
});

scenario('the target receives its own model name and the messages as they were', async () => {
  const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Grüße, 世界 \u{1F980} "quoted" \\ \n end' }];
  await fixture.client.chat.completions.create({ ...ask, messages });
  assert.equal(fixture.upstream.last.path, '/v1/chat/completions');
  assert.equal(fixture.upstream.last.json().model, 'scripted');
  assert.deepEqual(fixture.upstream.last.json().messages, messages);
});

scenario('a streamed answer arrives chunk by chunk with one id and ends in DONE', async () => {
  fixture.upstream.answer(textStream(['Hel', 'lo', '.']));
  const { chunks, text } = await gather(await fixture.client.chat.completions.create({ ...ask, stream: true }));
  assert.equal(text, 'Hello.');
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.equal(new Set(chunks.map((one) => one.id)).size, 1);
  assert.ok(chunks.every((one) => one.object === 'chat.completion.chunk'));
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
});

scenario('the bytes of a stream are server-sent events that end in DONE', async () => {
  fixture.upstream.answer(textStream(['a', 'b']));
  const answer = await fixture.molly.post('/v1/chat/completions', { ...ask, stream: true });
  assert.match(answer.headers.get('content-type'), /^text\/event-stream/);
  const events = (await answer.text()).split('\n\n').filter(Boolean);
  assert.ok(events.every((event) => event.startsWith('data: ')));
  assert.equal(events.at(-1), 'data: [DONE]');
});

scenario('chunks are not held back while the target thinks', async () => {
  fixture.upstream.answer(textStream(['one', 'two', 'three'], { gap: 200 }));
  const stream = await fixture.client.chat.completions.create({ ...ask, stream: true });
  let first = null;
  for await (const one of stream) if (one.choices[0]?.delta.content && first === null) first = fixture.upstream.last.answeredAt;
  assert.equal(first, null, 'the first word came only after the target had finished');
});

scenario('the helper that gathers a stream gives the final message', async () => {
  fixture.upstream.answer(textStream(['Hel', 'lo']));
  const runner = fixture.client.chat.completions.stream(ask);
  const final = await runner.finalChatCompletion();
  assert.equal(final.choices[0].message.content, 'Hello');
});

scenario('usage is reported in a stream only when it was asked for', async () => {
  fixture.upstream.answer(textStream(['x']));
  const asked = await gather(await fixture.client.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } }));
  assert.deepEqual(asked.chunks.at(-1).choices, []);
  assert.equal(asked.chunks.at(-1).usage.total_tokens, 17);
  assert.equal(asked.chunks.filter((one) => one.usage).length, 1);
  const silent = await gather(await fixture.client.chat.completions.create({ ...ask, stream: true }));
  assert.ok(silent.chunks.every((one) => !one.usage && one.choices.length === 1));
});

scenario('usage details survive', async () => {
  const usage = {
    prompt_tokens: 10, completion_tokens: 4, total_tokens: 14,
    prompt_tokens_details: { cached_tokens: 8, audio_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 3 },
  };
  fixture.upstream.answer(whole(completion('x', { usage })));
  assert.deepEqual((await fixture.client.chat.completions.create(ask)).usage, usage);
});

scenario('n choices come back as n choices', async () => {
  const choices = ['one', 'two'].map((text, index) => ({ index, message: message(text), logprobs: null, finish_reason: 'stop' }));
  fixture.upstream.answer(whole(completion('', { choices })));
  const answer = await fixture.client.chat.completions.create({ ...ask, n: 2 });
  assert.deepEqual(answer.choices.map((one) => [one.index, one.message.content]), [[0, 'one'], [1, 'two']]);
  assert.equal(fixture.upstream.last.json().n, 2);
});

scenario('n choices interleave in a stream', async () => {
  fixture.upstream.answer(streamOf([
    chunk(choice({ role: 'assistant', content: '' }, { index: 0 })),
    chunk(choice({ role: 'assistant', content: '' }, { index: 1 })),
    chunk(choice({ content: 'a' }, { index: 0 })), chunk(choice({ content: 'b' }, { index: 1 })),
    chunk(choice({ content: 'A' }, { index: 0 })), chunk(choice({ content: 'B' }, { index: 1 })),
    chunk(choice({}, { index: 1, finish: 'length' })), chunk(choice({}, { index: 0, finish: 'stop' })),
  ]));
  const { chunks } = await gather(await fixture.client.chat.completions.create({ ...ask, n: 2, stream: true }));
  const flat = chunks.flatMap((one) => one.choices);
  const textOf = (index) => flat.filter((one) => one.index === index).map((one) => one.delta.content ?? '').join('');
  assert.deepEqual([textOf(0), textOf(1)], ['aA', 'bB']);
  assert.deepEqual(flat.filter((one) => one.finish_reason).map((one) => [one.index, one.finish_reason]), [[1, 'length'], [0, 'stop']]);
});

scenario('log-probabilities pass in whole answers and in streams', async () => {
  const logprobs = { content: [{ token: 'Hi', logprob: -0.25, bytes: [72, 105], top_logprobs: [{ token: 'Hi', logprob: -0.25, bytes: [72, 105] }] }], refusal: null };
  fixture.upstream.answer(whole(completion('', { choices: [{ index: 0, message: message('Hi'), logprobs, finish_reason: 'stop' }] })));
  const answer = await fixture.client.chat.completions.create({ ...ask, logprobs: true, top_logprobs: 1 });
  assert.deepEqual(answer.choices[0].logprobs, logprobs);
  fixture.upstream.answer(streamOf([chunk(choice({ role: 'assistant', content: 'Hi' }, { logprobs })), chunk(choice({}, { finish: 'stop' }))]));
  const { chunks } = await gather(await fixture.client.chat.completions.create({ ...ask, logprobs: true, top_logprobs: 1, stream: true }));
  assert.deepEqual(chunks.find((one) => one.choices[0].logprobs)?.choices[0].logprobs, logprobs);
});

scenario('reasoning and refusal pass both ways', async () => {
  fixture.upstream.answer(whole(completion('', {
    choices: [{ index: 0, message: message('4', { reasoning_content: '2+2' }), logprobs: null, finish_reason: 'stop' }],
  })));
  assert.equal((await fixture.client.chat.completions.create(ask)).choices[0].message.reasoning_content, '2+2');
  fixture.upstream.answer(streamOf([
    chunk(choice({ role: 'assistant', reasoning_content: 'think' })), chunk(choice({ refusal: 'I will not.' })), chunk(choice({}, { finish: 'stop' })),
  ]));
  const { chunks } = await gather(await fixture.client.chat.completions.create({ ...ask, stream: true }));
  const deltas = chunks.map((one) => one.choices[0].delta);
  assert.equal(deltas.map((one) => one.reasoning_content ?? '').join(''), 'think');
  assert.equal(deltas.map((one) => one.refusal ?? '').join(''), 'I will not.');
});

scenario('fields that nobody here knows survive both ways', async () => {
  const strange = completion('x', { system_fingerprint: 'fp_1', timings: { predicted_ms: 1.50 } });
  strange.choices[0].message.annotations = [{ type: 'url_citation' }];
  strange.choices[0].stop_reason = 128001;
  fixture.upstream.answer(whole(strange));
  const answer = await fixture.client.chat.completions.create({
    ...ask, chat_template_kwargs: { enable_thinking: false }, mirostat: 2,
    messages: [{ role: 'user', content: 'hi', cache_control: { type: 'ephemeral' } }],
  });
  const sent = fixture.upstream.last.json();
  assert.deepEqual([sent.chat_template_kwargs, sent.mirostat], [{ enable_thinking: false }, 2]);
  assert.deepEqual(sent.messages[0].cache_control, { type: 'ephemeral' });
  assert.deepEqual([answer.system_fingerprint, answer.timings], ['fp_1', { predicted_ms: 1.5 }]);
  assert.deepEqual(answer.choices[0].message.annotations, [{ type: 'url_citation' }]);
  assert.equal(answer.choices[0].stop_reason, 128001);
});

scenario('numbers keep their spelling in both directions', async () => {
  const body = '{"model":"up","temperature":1.0,"top_p":0.70,"presence_penalty":1e-3,"seed":9007199254740993,"strange":12345678901234567890.10,"messages":[{"role":"user","content":"x"}]}';
  const reply = JSON.stringify(completion('x')).replace('"usage"', '"cost":0.10,"big":12345678901234567890,"usage"');
  fixture.upstream.answer(whole(reply));
  const answer = await fixture.molly.post('/v1/chat/completions', body);
  assert.equal(answer.status, 200);
  for (const spelling of ['"temperature":1.0', '"top_p":0.70', '"presence_penalty":1e-3', '"seed":9007199254740993', '"strange":12345678901234567890.10']) {
    assert.ok(fixture.upstream.last.text.replaceAll(' ', '').includes(spelling), `${spelling} was respelled: ${fixture.upstream.last.text}`);
  }
  const text = (await answer.text()).replaceAll(' ', '');
  assert.ok(text.includes('"cost":0.10') && text.includes('"big":12345678901234567890'), text);
});

scenario('content parts and newer roles reach the target', async () => {
  const messages = [
    { role: 'developer', content: 'Be kind.' },
    { role: 'user', content: [{ type: 'text', text: 'What is this?' }, { type: 'text', text: 'Look.' }] },
    { role: 'assistant', content: 'A cat.', name: 'helper' },
    { role: 'user', content: 'Sure?' },
  ];
  await fixture.client.chat.completions.create({ ...ask, messages, max_completion_tokens: 7, stop: ['\n'], user: 'ana', metadata: { a: 'b' }, store: false });
  const sent = fixture.upstream.last.json();
  assert.deepEqual(sent.messages, messages);
  assert.equal(sent.max_completion_tokens ?? sent.max_tokens, 7);
  assert.deepEqual([sent.stop, sent.user, sent.metadata, sent.store], [['\n'], 'ana', { a: 'b' }, false]);
});

scenario('finish reasons pass', async () => {
  for (const finish of ['stop', 'length', 'content_filter']) {
    fixture.upstream.answer(whole(completion('', { choices: [{ index: 0, message: message('x'), logprobs: null, finish_reason: finish }] })));
    assert.equal((await fixture.client.chat.completions.create(ask)).choices[0].finish_reason, finish);
    fixture.upstream.answer(streamOf(textChunks(['x'], finish)));
    const { chunks } = await gather(await fixture.client.chat.completions.create({ ...ask, stream: true }));
    assert.equal(chunks.at(-1).choices[0].finish_reason, finish);
  }
});

scenario('a long stream and a long prompt pass unharmed', async () => {
  const words = Array.from({ length: 3000 }, (_, i) => `w${i} `);
  fixture.upstream.answer(textStream(words));
  const prompt = 'long '.repeat(200_000);
  const { text } = await gather(await fixture.client.chat.completions.create({ ...ask, messages: [{ role: 'user', content: prompt }], stream: true }));
  assert.equal(text, words.join(''));
  assert.equal(fixture.upstream.last.json().messages[0].content, prompt);
});

scenario('a target that writes its stream in odd pieces is understood', async () => {
  fixture.upstream.answer(async (exchange) => {
    exchange.head(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const bytes = Buffer.from(`: comment\r\n\r\n${textChunks(['Grü', 'ße \u{1F980}']).map((one) => `data:${JSON.stringify(one)}\r\n\r\n`).join('')}data: [DONE]\r\n\r\n`);
    for (let i = 0; i < bytes.length; i += 7) {
      exchange.body(bytes.subarray(i, i + 7));
      if (i % 70 === 0) await exchange.sleep(1);
    }
    exchange.end();
  });
  assert.equal((await gather(await fixture.client.chat.completions.create({ ...ask, stream: true }))).text, 'Grüße \u{1F980}');
});

scenario('many requests at once keep their answers apart', async () => {
  fixture.upstream.answer((exchange) => whole(completion(exchange.request.json().messages[0].content))(exchange));
  const texts = Array.from({ length: 64 }, (_, i) => `number ${i}`);
  const answers = await Promise.all(texts.map((content) => fixture.client.chat.completions.create({ ...ask, messages: [{ role: 'user', content }] })));
  assert.deepEqual(answers.map((one) => one.choices[0].message.content), texts);
});
