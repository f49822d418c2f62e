// Starting, draining, reloading, overload, and what survives a crash of the control plane.
import assert from 'node:assert/strict';
import { after, before, beforeEach } from 'node:test';
import OpenAI from 'openai';
import { completion, endlessStream, textStream, whole } from '../answers.mjs';
import { alive, failureOf, gather, Molly, scenario, sleep, target, until, within } from '../harness.mjs';
import { Upstream } from '../upstream.mjs';

const messages = [{ role: 'user', content: 'Say hello.' }];
let upstream;
before(async () => (upstream = await Upstream.start()));
beforeEach(() => upstream?.clear());
after(() => upstream?.close());

/** A case with a Molly of its own. */
function withMolly(name, config, body, options = {}) {
  let molly;
  scenario(name, { molly: () => molly, timeout: 60_000 }, async (context) => {
    molly = await Molly.start({ config: config(), ...options });
    try {
      await body(molly, context);
    } finally {
      await molly.remove();
    }
  });
}
const up = (fields) => () => target('up', upstream.url, fields);

withMolly('a stream that ends within the drain time ends properly on SIGTERM', () => `[server]\ndrain_seconds = 10\n${up()()}`, async (molly) => {
  upstream.answer(textStream(['one', 'two', 'three', 'four'], { gap: 300 }));
  const stream = await molly.client().chat.completions.create({ model: 'up', messages, stream: true });
  const gathered = gather(stream);
  await within(5000, upstream.received(), 'the request');
  molly.child.kill('SIGTERM');
  await sleep(100);
  const late = await molly.post('/v1/chat/completions', { model: 'up', messages }).then((answer) => answer.status, () => 'refused');
  assert.ok(late === 'refused' || late === 503, `${late}`);
  assert.equal((await gathered).text, 'onetwothreefour');
  const exit = await within(10_000, molly.exited, 'the exit');
  assert.deepEqual(exit, { code: 0, signal: null });
});

withMolly('a stream that outlives the drain time ends in a typed error', () => `[server]\ndrain_seconds = 1\n${up()()}`, async (molly) => {
  upstream.answer(endlessStream(50));
  const stream = await molly.client().chat.completions.create({ model: 'up', messages, stream: true });
  const error = failureOf(gather(stream));
  await sleep(200);
  molly.child.kill('SIGTERM');
  assert.ok((await within(10_000, error, 'the end of the stream')) instanceof OpenAI.APIError);
  assert.ok((await error).error?.message, 'the error event says why');
  assert.equal((await within(10_000, molly.exited, 'the exit')).code, 0);
  assert.ok(upstream.last.disconnectedAt);
});

withMolly('readiness ends before the drain does', () => `[server]\ndrain_seconds = 5\n${up()()}`, async (molly) => {
  upstream.answer(endlessStream(50));
  const stream = await molly.client().chat.completions.create({ model: 'up', messages, stream: true });
  molly.child.kill('SIGTERM');
  await until(async () => molly.fetch('/ready').then((answer) => answer.status === 503, () => true), '/ready to say no', 4000);
  stream.controller.abort();
  await within(10_000, molly.exited, 'the exit');
});

withMolly('a target that is added to the file serves without a restart', up(), async (molly) => {
  assert.equal((await failureOf(molly.client().chat.completions.create({ model: 'later', messages }))).status, 404);
  molly.writeConfig(`${up()()}${target('later', upstream.url)}`);
  await until(async () => (await molly.post('/v1/chat/completions', { model: 'later', messages })).status === 200, 'the new target', 10_000);
  molly.writeConfig(target('later', upstream.url));
  await until(async () => (await molly.post('/v1/chat/completions', { model: 'up', messages })).status === 404, 'the old target to go', 10_000);
});

withMolly('a broken file is refused as a whole and the old one stays in force', up(), async (molly) => {
  for (const broken of [`${up()()}${target('later', upstream.url)}[defaults]\nmax_teir = "T0"\n`, 'not [ toml', `${target('later', upstream.url, { tier: '"T7"' })}`]) {
    molly.writeConfig(broken);
    molly.child.kill('SIGHUP');
    await sleep(700);
    assert.equal((await molly.post('/v1/chat/completions', { model: 'up', messages })).status, 200);
    assert.equal((await molly.post('/v1/chat/completions', { model: 'later', messages })).status, 404);
  }
  assert.match(molly.log(), /max_tier/, 'the log names the key that was meant');
  molly.writeConfig(`${up()()}${target('later', upstream.url)}`);
  molly.child.kill('SIGHUP');
  await until(async () => (await molly.post('/v1/chat/completions', { model: 'later', messages })).status === 200, 'the mended file', 10_000);
});

withMolly('a request in flight finishes on the configuration that it began with', up(), async (molly) => {
  upstream.answer(textStream(['one', 'two', 'three'], { gap: 400 }));
  const gathered = gather(await molly.client().chat.completions.create({ model: 'up', messages, stream: true }));
  await within(5000, upstream.received(), 'the request');
  molly.writeConfig(target('other', upstream.url));
  molly.child.kill('SIGHUP');
  await until(async () => (await molly.post('/v1/chat/completions', { model: 'up', messages })).status === 404, 'the reload', 10_000);
  assert.equal((await gathered).text, 'onetwothree');
});

scenario('a file with a mistake does not start, and the sentence names line and nearest key', {}, async () => {
  const error = await failureOf(Molly.start({ config: '[server]\nmax_in_fligth = 3\n' }));
  assert.match(error.message, /max_in_flight/);
  assert.match(error.message, /:2/);
});

scenario('a secret in the file itself is refused and not repeated', {}, async () => {
  const error = await failureOf(Molly.start({ config: target('up', upstream.url, { key: '"sk-very-secret-4711"' }) }));
  assert.match(error.message, /env:|file:/);
  assert.ok(!error.message.includes('sk-very-secret-4711'));
});

withMolly('a key from the environment reaches the target and nothing else', up({ key: '"env:UP_KEY"' }), async (molly) => {
  await molly.client({ apiKey: 'client-key' }).chat.completions.create({ model: 'up', messages });
  assert.equal(upstream.last.headers.authorization, 'Bearer sk-target-4711');
  assert.ok(!molly.log().includes('sk-target-4711'));
  assert.ok(!(await (await molly.fetch('/metrics')).text()).includes('sk-target-4711'));
}, { env: { UP_KEY: 'sk-target-4711' } });

withMolly('more requests than allowed at once are turned away with a time to come back', () => `[server]\nmax_in_flight = 4\n${up()()}`, async (molly) => {
  upstream.answer(async (exchange) => {
    await exchange.sleep(800);
    await whole(completion('late'))(exchange);
  });
  const answers = await Promise.all(Array.from({ length: 12 }, () => molly.post('/v1/chat/completions', { model: 'up', messages })));
  const byStatus = Map.groupBy(answers, (one) => one.status);
  assert.equal(byStatus.get(200)?.length, 4, [...byStatus.keys()].join());
  const turnedAway = [...(byStatus.get(429) ?? []), ...(byStatus.get(503) ?? [])];
  assert.equal(turnedAway.length, 8);
  for (const one of turnedAway) assert.ok(Number(one.headers.get('retry-after')) >= 1);
});

withMolly('a control plane that is killed comes back on the same address', up(), async (molly) => {
  const victim = molly.controlPlane();
  assert.ok(victim, 'there is a control plane of its own');
  process.kill(victim, 'SIGKILL');
  await until(() => molly.controlPlane() && molly.controlPlane() !== victim, 'another control plane');
  const answer = await molly.client({ maxRetries: 4 }).chat.completions.create({ model: 'up', messages });
  assert.equal(answer.choices[0].finish_reason, 'stop');
  assert.equal(molly.exit, undefined, 'the parent lives on');
  assert.equal((await molly.run(['audit', 'verify'])).code, 0, 'the audit log survived');
});

withMolly('an acknowledged request is in the audit log even after kill -9', up(), async (molly) => {
  const answer = await molly.post('/v1/chat/completions', { model: 'up', messages });
  const trace = answer.headers.get('x-molly-trace');
  process.kill(molly.controlPlane(), 'SIGKILL');
  await until(async () => molly.fetch('/ready').then((one) => one.ok, () => false), 'the restart');
  assert.equal(answer.status, 200);
  const verified = await molly.run(['audit', 'verify']);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  assert.ok(trace);
});

scenario('no process is left behind when the parent is killed', { timeout: 60_000 }, async () => {
  const molly = await Molly.start({ config: target('up', upstream.url) });
  await molly.client({ timeout: 60_000 }).chat.completions.create({ model: 'auto', messages, max_tokens: 2 });
  const processes = molly.processes().map((one) => one.pid);
  assert.ok(processes.length >= 2, 'control plane and model server');
  molly.child.kill('SIGKILL');
  await until(() => processes.every((pid) => !alive(pid)), 'all children to end', 10_000);
  await molly.remove();
});

withMolly('a second server on the same data folder is refused with a sentence', up(), async (molly) => {
  const second = await molly.run(['serve', '--listen', '127.0.0.1:0'], { timeout: 10_000 });
  assert.ok(Number.isInteger(second.code) && second.code !== 0, `${second.code}`);
  assert.ok((second.stderr + second.stdout).length > 20);
  assert.equal((await molly.post('/v1/chat/completions', { model: 'up', messages })).status, 200, 'the first goes on');
});

scenario('a stale socket and address of a crashed run do not prevent the next start', { timeout: 60_000 }, async () => {
  const first = await Molly.start({ config: target('up', upstream.url) });
  first.child.kill('SIGKILL');
  await first.exited;
  const second = await Molly.start({ config: target('up', upstream.url), folder: first.folder });
  assert.equal((await second.post('/v1/chat/completions', { model: 'up', messages })).status, 200);
  await second.remove();
});
