// molly-engine listens before its model is loaded, and says how far it is.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Molly, program, sleep, temporaryFolder, until, within } from '../harness.mjs';
import { writeZeroModel } from '../zero_model.mjs';

let folder;
let model;
before(() => {
  folder = temporaryFolder('loading');
  model = path.join(folder, 'large.gguf');
  writeZeroModel(model);
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

function get(socketPath, route) {
  return new Promise((resolve, reject) => {
    http.get({ socketPath, path: route, timeout: 5_000 }, (answer) => {
      let text = '';
      answer.on('data', (piece) => (text += piece));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body: JSON.parse(text) }));
    }).on('error', reject);
  });
}

function start(name, ...args) {
  const socket = path.join(folder, `${name}.sock`);
  const child = spawn(`${program}-engine`, ['serve', '--model', model, '--listen', `unix:${socket}`, '--threads', '1', '--pool', '64MiB', ...args], { stdio: 'ignore' });
  const exited = once(child, 'exit').then(([code]) => code);
  return { child, socket, exited };
}

test('health answers 503 with a progress that grows until the model is loaded, other routes a typed error', async () => {
  const engine = start('a');
  try {
    const seen = [];
    let refused = null;
    const ready = await until(async () => {
      const health = await get(engine.socket, '/health').catch(() => null);
      if (health?.status === 503) seen.push(health.body);
      if (health?.status === 503) refused ??= await get(engine.socket, '/v1/models');
      return health?.status === 200 ? health : null;
    }, 'the model to be loaded', 60_000);
    assert.deepEqual(ready.body, { status: 'ok' });
    assert.ok(seen.length > 0, 'it was never seen loading');
    for (const { status, progress } of seen) assert.ok(status === 'loading' && progress >= 0 && progress < 1, `${status} ${progress}`);
    assert.deepEqual(seen.map(({ progress }) => progress), seen.map(({ progress }) => progress).sort((a, b) => a - b));
    if (refused.status === 503) {
      assert.equal(refused.body.error.type, 'server_error');
      assert.match(refused.body.error.message, /being loaded/);
      assert.equal(refused.headers['retry-after'], '1');
    }
    assert.equal((await get(engine.socket, '/v1/models')).status, 200);
  } finally {
    engine.child.kill('SIGKILL');
    await engine.exited;
  }
});

test('a signal ends it while it loads', async () => {
  const engine = start('b');
  await until(() => fs.existsSync(engine.socket), 'the socket', 20_000);
  engine.child.kill('SIGTERM');
  assert.equal(await within(10_000, engine.exited, 'the exit'), 0);
});

test('Molly shows how much of a model is loaded', { timeout: 90_000 }, async () => {
  const molly = await Molly.start({ config: '[models]\nruntime = "molly-engine"\ncontext = 512\n' });
  try {
    const added = await molly.run(['models', 'add', model, '--name', 'large']);
    assert.equal(added.code, 0, added.stderr);
    await until(async () => (await molly.runJson(['status'])).targets.some((target) => target.name === 'large'), 'the new model');
    const asked = molly.post('/v1/completions', { model: 'large', prompt: 'a', max_tokens: 1 }).then((answer) => answer.status, (error) => error.message);
    const shares = [];
    await until(async () => {
      const status = (await get(path.join(molly.data, 'run/molly.sock'), '/molly/v1/status')).body;
      const process = status.targets.find((target) => target.name === 'large')?.process;
      if (process?.loaded !== undefined) shares.push(process.loaded);
      await sleep(5);
      return process?.state === 'ready' || process?.state === 'failed' ? process : null;
    }, 'the model to be ready', 60_000);
    assert.ok(shares.length > 0 && shares.every((share) => share >= 0 && share < 1), `${shares}`);
    await asked;
  } finally {
    await molly.remove();
  }
});
