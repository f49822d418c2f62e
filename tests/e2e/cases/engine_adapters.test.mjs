// Adapters of a running molly-engine: loaded, mixed, refused, removed under load; and clients that misbehave meanwhile.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { EngineProcess, nano } from '../engine_process.mjs';
import { until } from '../harness.mjs';
import { writeAdapter } from '../gguf.mjs';

let engine;
const file = (name) => path.join(engine.folder, `${name}.gguf`);

before(async () => {
  engine = await EngineProcess.start({ args: ['--parallel', '8'] });
  for (const [seed, name] of ['red', 'green', 'blue', 'wide'].entries()) {
    writeAdapter(file(name), nano, { seed: seed + 1, rank: name === 'wide' ? 16 : 4, strength: 15 });
    assert.equal((await engine.addAdapter(name, file(name))).status, 200);
  }
});
after(async () => assert.equal(await engine.stop(), 0, engine.log));

test('an adapter changes the answer, the same way each time', async () => {
  const base = await engine.text();
  const red = await engine.text({ adapter: 'red' });
  assert.notEqual(red, base);
  assert.equal(await engine.text({ adapter: 'red' }), red);
  assert.equal(await engine.text(), base);
  assert.notEqual(await engine.text({ adapter: 'green' }), red);
});

test('a mix with one weight of one is that adapter, with weight zero the base', async () => {
  assert.equal(await engine.text({ adapter_mix: { red: 1 } }), await engine.text({ adapter: 'red' }));
  assert.equal(await engine.text({ adapter_mix: { red: 0 } }), await engine.text());
  const mixed = await engine.text({ adapter_mix: { red: 0.5, blue: 0.5 } });
  assert.equal(await engine.text({ adapter_mix: { red: 0.5, blue: 0.5 } }), mixed);
});

test('the base may guess for an adapter, and the answer is the same', async () => {
  const plain = await engine.text({ adapter: 'red', max_tokens: 40, drafting: 'off' });
  for (const drafting of ['auto', 'base']) assert.equal(await engine.text({ adapter: 'red', max_tokens: 40, drafting }), plain);
});

test('adapters of different ranks run in one batch and answer as they do alone', async () => {
  const names = [null, 'red', 'green', 'blue', 'wide'];
  const more = (name) => (name ? { adapter: name } : {});
  const alone = [];
  for (const name of names) alone.push(await engine.text(more(name)));
  const stepsBefore = await engine.metric('steps_total');
  const together = await Promise.all(names.map((name) => engine.text(more(name))));
  const steps = (await engine.metric('steps_total')) - stepsBefore;
  assert.deepEqual(together, alone);
  assert.ok(steps < 12 * names.length, `${steps} steps: one after the other`);
});

test('all adapters are listed with their states', async () => {
  const listed = await engine.adapters();
  assert.deepEqual(listed.map((one) => one.name).sort(), ['blue', 'green', 'red', 'wide']);
  assert.ok(listed.every((one) => one.rank === (one.name === 'wide' ? 16 : 4) && one.uses > 0));
});

test('a name that is taken is a conflict, one that is not known is named', async () => {
  assert.equal((await engine.addAdapter('red', file('green'))).status, 409);
  const unknown = await engine.chat({ adapter: 'purple' });
  assert.ok(unknown.status === 404 || unknown.status === 400, `${unknown.status}`);
  assert.match(unknown.json().error.message, /purple/);
  assert.ok((await engine.call('DELETE', '/adapters/purple')).status === 404);
});

// Whether it is refused when it is added or when it is first used, the sentence must reach who asked.
async function refusal(name) {
  const added = await engine.addAdapter(name, file(name));
  if (added.status !== 200) return added;
  const asked = await engine.chat({ adapter: name });
  await engine.call('DELETE', `/adapters/${name}`);
  return asked;
}

test('files that are damaged or do not fit are refused with the reason', async () => {
  const good = fs.readFileSync(file('red'));
  const infinite = Buffer.from(good);
  infinite.writeFloatLE(Infinity, good.length - 64);
  const huge = Buffer.from(good);
  huge.writeBigUInt64LE(0xffffffffffffffffn, 8);
  const cases = {
    cut: [good.subarray(0, good.length / 2), /cut/],
    head: [good.subarray(0, 100), /head/],
    empty: [Buffer.alloc(0), /empty/],
    noise: [Buffer.from('no model at all'), /noise/],
    infinite: [infinite, /infinite|not a number/],
    huge: [huge, /huge/],
  };
  for (const [name, [bytes, reason]] of Object.entries(cases)) {
    fs.writeFileSync(file(name), bytes);
    const answer = await refusal(name);
    assert.equal(answer.status, 400, `${name}: ${answer.status} ${answer.text}`);
    assert.match(answer.json().error.message, reason);
  }
  writeAdapter(file('foreign'), nano, { architecture: 'mamba' });
  assert.match((await refusal('foreign')).json().error.message, /mamba/);
  assert.ok((await engine.text()).length > 0, 'the others are unharmed');
});

test('an adapter that is removed under load: what runs with it ends well or with a typed error, others are unharmed', async () => {
  const expected = await engine.text({ adapter: 'blue', max_tokens: 40 });
  const running = Array.from({ length: 8 }, (_, i) => engine.chat({ adapter: i % 2 ? 'blue' : 'green', max_tokens: 40 }));
  await until(async () => (await engine.metric('running')) > 1, 'them to run');
  const removed = await engine.call('DELETE', '/adapters/green');
  assert.ok([200, 409].includes(removed.status), `${removed.status} ${removed.text}`);
  const answers = await Promise.all(running);
  answers.forEach((answer, i) => {
    if (i % 2) return assert.equal(answer.json().choices[0].message.content, expected);
    assert.ok(answer.status === 200 || answer.json().error.message.length > 0);
  });
  assert.equal((await engine.chat({ adapter: 'green' })).status, 404);
  assert.equal((await engine.addAdapter('green', file('green'))).status, 200);
  assert.ok((await engine.text({ adapter: 'green' })).length > 0);
});

test('a client that does not read holds up nobody', async () => {
  const stalled = Array.from({ length: 4 }, () => {
    const request = engine.request('POST', '/v1/chat/completions', { 'content-type': 'application/json' }, (answer) => answer.pause());
    request.on('error', () => {});
    request.end(JSON.stringify({ messages: [{ role: 'user', content: 'Count.' }], max_tokens: 2000, ignore_eos: true, stream: true }));
    return request;
  });
  await until(async () => (await engine.metric('running')) >= 4, 'the stalled ones to run');
  const answers = await Promise.all(Array.from({ length: 8 }, () => engine.chat({ adapter: 'red' })));
  assert.ok(answers.every((one) => one.status === 200));
  stalled.forEach((request) => request.destroy());
  await until(async () => (await engine.metric('running')) === 0, 'their places to be free');
});

test('nothing is left over: pages, users, descriptors', async () => {
  const ask = (count) => Promise.all(Array.from({ length: count }, (_, i) => engine.chat({ max_tokens: 2, adapter: ['red', 'green', 'blue', 'wide'][i % 4] })));
  await ask(16);
  await until(async () => (await engine.adapters()).every((one) => one.users === 0), 'no users');
  const before = { descriptors: engine.openDescriptors(), free: await engine.metric('free_pages') };
  for (let round = 0; round < 10; ++round) await ask(16);
  await until(async () => (await engine.adapters()).every((one) => one.users === 0), 'no users');
  assert.equal(await engine.metric('free_pages'), before.free);
  await until(() => engine.openDescriptors() <= before.descriptors + 2, 'the connections to be closed');
});
