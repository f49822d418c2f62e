// Nothing grows with the number of requests: pages, adapters' users, descriptors, threads, memory.
// LEAK_REQUESTS=100000 is the full measure.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { EngineProcess, nano } from '../engine_process.mjs';
import { writeAdapter } from '../gguf.mjs';
import { program, until } from '../harness.mjs';

const REQUESTS = Number(process.env.LEAK_REQUESTS ?? 2000);
const CONNECTIONS = 16;
const MIB = 2 ** 20;
const GROWTH = 8 * MIB; // of memory from the warm-up to the end: what the allocator keeps
// An address sanitizer keeps freed memory for a while, so that its growth tells nothing.
const sanitized = fs.readFileSync(`${program}-engine`).includes('__asan_init');

const ADAPTERS = ['red', 'green', 'blue', 'grey', 'pink', 'gold'];
const SUBJECTS = ['a fox', 'two hens', 'the old mill', 'rain', 'a long road', 'bread'];
const SHARED = 'You are a patient assistant who answers in few words, never guesses, and asks when something is unclear. ';

let engine;
const file = (name) => path.join(engine.folder, `${name}.gguf`);

before(async () => {
  // Room for some of the adapters and sequences, so that they push each other out.
  engine = await EngineProcess.start({ pool: '2560KiB', args: ['--warm', '256KiB', '--parallel', '8', '--context', '512', '--page-tokens', '16'] });
  for (const [seed, name] of [...ADAPTERS, 'guest'].entries()) writeAdapter(file(name), nano, { seed: seed + 1, rank: 4 + 4 * (seed % 3), strength: 10 });
  for (const name of ADAPTERS) assert.equal((await engine.addAdapter(name, file(name))).status, 200);
});
after(async () => assert.equal(await engine.stop({ patience: 8_000 }), 0, engine.log));

const pick = (list, number) => list[number % list.length];
const question = (number) => [{ role: 'user', content: `Tell me of ${pick(SUBJECTS, number)}, number ${number % 97}.` }];
const shared = (number) => [{ role: 'system', content: SHARED.repeat(2) }, ...question(number)];

async function answered(asked, ...statuses) {
  const answer = await asked;
  assert.ok(statuses.includes(answer.status), `${answer.status}: ${answer.text}`);
  return answer;
}

async function streamed(body) {
  const { text } = await answered(engine.chat({ ...body, stream: true }), 200);
  assert.ok(text.endsWith('data: [DONE]\n\n'), text.slice(-300));
}

/** Leaves at the first bytes of the answer, or, where `patience` is given, after so many milliseconds. */
function leave(body, patience) {
  return new Promise((resolve) => {
    const request = engine.request('POST', '/v1/chat/completions', {}, (answer) => answer.once('data', () => request.destroy()).on('error', () => {}));
    request.on('error', () => {});
    request.on('close', resolve);
    request.end(JSON.stringify({ messages: question(0), max_tokens: 300, ignore_eos: true, stream: true, ...body }));
    if (patience !== undefined) setTimeout(() => request.destroy(), patience);
  });
}

function nonsense(text) {
  return new Promise((resolve, reject) => {
    engine.request('POST', '/v1/chat/completions', {}, (answer) => answer.resume().on('end', () => resolve({ status: answer.statusCode }))).on('error', reject).end(text);
  });
}

/** An adapter that comes, is used and goes, half of the time while it is in use. */
async function guest(number) {
  const name = `guest-${number}`;
  await answered(engine.addAdapter(name, file('guest')), 200);
  const asked = answered(engine.chat({ messages: question(number), adapter: name, max_tokens: 6, cache_domain: 'guests' }), 200, 404);
  if (number % 2) await asked;
  await answered(engine.call('DELETE', `/adapters/${name}`), 200);
  await asked;
}

async function tokens(number) {
  const { content } = question(number)[0];
  const { tokens } = (await answered(engine.call('POST', '/tokenize', { content }), 200)).json();
  assert.equal((await answered(engine.call('POST', '/detokenize', { tokens }), 200)).json().content, content);
}

// What clients do, by turns.
const KINDS = [
  (n) => answered(engine.chat({ messages: question(n), max_tokens: 8 }), 200),
  (n) => streamed({ messages: question(n), adapter: pick(ADAPTERS, n), max_tokens: 8 }),
  (n) => answered(engine.chat({ messages: shared(n), adapter: pick(ADAPTERS, n), cache_domain: `team-${n % 2}`, member: `member-${n}`, max_tokens: 4 }), 200),
  (n) => streamed({ messages: shared(n), cache_domain: `team-${n % 2}`, member: 'one', max_tokens: 6 }),
  (n) => answered(engine.chat({ messages: question(n), adapter_mix: { [pick(ADAPTERS, n)]: 0.5, [pick(ADAPTERS, n + 1)]: 0.25 }, max_tokens: 6 }), 200),
  (n) => answered(engine.chat({ messages: question(n), cache_domain: `only-${n}`, task_class: `class-${n}`, max_tokens: 3 }), 200),
  (n) => answered(engine.call('POST', '/v1/embeddings', { input: [question(n)[0].content, 'hens'], ...(n % 2 ? { adapter: pick(ADAPTERS, n) } : {}) }), 200),
  tokens,
  (n) => answered(engine.chat({ messages: question(n), n: 2, temperature: 1, seed: n, max_tokens: 6, logprobs: true, confidence: true }), 200),
  (n) => leave({ messages: question(n), adapter: pick(ADAPTERS, n) }),
  (n) => leave({ messages: shared(n), cache_domain: `team-${n % 2}` }, n % 4),
  (n) => answered(engine.chat({ messages: question(n), adapter: 'nobody' }), 404),
  (n) => answered(nonsense(pick(['{"messages":', 'hello', '{"messages":7}', ''], n)), 400),
  (n) => answered(engine.chat({ messages: question(n), colour: 'red' }), 400),
  (n) => answered(engine.chat({ messages: [{ role: 'user', content: 'many words '.repeat(600) }] }), 400),
  (n) => answered(engine.chat({ messages: question(n), max_tokens: 200, ignore_eos: true, deadline_ms: 1 + 10 * (n % 8) }), 200, 504),
  (n) => answered(engine.chat({ messages: question(n), max_tokens: 12, response_format: { type: 'json_object' } }), 200),
  guest,
];

/**
 * Long answers, twice as many as run at once: even where a slow machine lets them begin one after the other, eight that
 * are half done on average need more pages than there are.
 */
function crowd() {
  return Promise.all(Array.from({ length: 16 }, (_, n) => streamed({ messages: question(n), max_tokens: 450, ignore_eos: true })));
}

async function send(first, last) {
  await crowd();
  let next = first;
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    while (next < last) {
      const number = next++;
      await KINDS[number % KINDS.length](Math.floor(number / KINDS.length));
    }
  }));
}

/** Once our connections are closed on the other side too. */
async function descriptors() {
  http.globalAgent.destroy();
  let last = -1;
  let same = 0;
  await until(() => {
    const count = engine.openDescriptors();
    same = count === last ? same + 1 : 0;
    last = count;
    return same === 20;
  }, 'the connections to be closed');
  return last;
}

/** What the engine holds when nobody asks anything. */
async function held() {
  await until(async () => (await engine.metric('running')) === 0 && (await engine.metric('waiting')) === 0, 'everything to be done');
  await until(async () => (await engine.adapters()).every((one) => one.users === 0), 'no users of adapters');
  const pages = {};
  for (const name of ['pages', 'free_pages', 'prefix_pages', 'adapter_pages']) pages[name] = await engine.metric(name);
  const adapters = (await engine.adapters()).map((one) => one.name).sort();
  const status = fs.readFileSync(`/proc/${engine.child.pid}/status`, 'utf8');
  const field = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)[1]);
  return { pages, adapters, threads: field('Threads'), resident: field('VmRSS') * 1024, descriptors: await descriptors() };
}

test('after many requests of all kinds nothing is left over', { timeout: 120_000 + REQUESTS * 100 }, async (context) => {
  const warm = Math.floor(REQUESTS / 5);
  await send(0, warm);
  const before = await held();
  await send(warm, REQUESTS);
  const after = await held();
  const growth = after.resident - before.resident;
  const [preemptions, evictions, cached] = await Promise.all(['preemptions', 'adapter_evictions', 'cached_tokens'].map((name) => engine.metric(`${name}_total`)));
  context.diagnostic(`${preemptions} preemptions, ${evictions} evictions of adapters, ${cached} cached tokens`);
  context.diagnostic(`${REQUESTS} requests; resident ${(before.resident / MIB).toFixed(1)} MiB, then ${(growth / MIB).toFixed(2)} MiB more; ${after.descriptors} descriptors, ${after.threads} threads; pages ${JSON.stringify(after.pages)}`);

  for (const { pages } of [before, after]) assert.equal(pages.free_pages + pages.prefix_pages + pages.adapter_pages, pages.pages, JSON.stringify(pages));
  assert.deepEqual(after.adapters, [...ADAPTERS].sort());
  assert.equal(after.descriptors, before.descriptors);
  assert.equal(after.threads, before.threads);
  assert.ok(preemptions > 0 && evictions > 0 && cached > 0, 'pages were short, and prefixes were shared');
  if (!sanitized) assert.ok(growth < GROWTH, `${growth} bytes more`);
});
