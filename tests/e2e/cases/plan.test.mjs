// The plan for this device is what molly-engine then uses, alone and under Molly.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { EngineProcess, nano } from '../engine_process.mjs';
import { Molly, program, temporaryFolder, until } from '../harness.mjs';

let folder;
before(() => (folder = temporaryFolder('plan')));
after(() => fs.rmSync(folder, { recursive: true, force: true }));

const engine = (...args) =>
  new Promise((resolve) => execFile(`${program}-engine`, args, { timeout: 20_000 }, (error, stdout, stderr) => resolve({ code: error ? error.code : 0, stdout, stderr })));

async function plan(...args) {
  const { code, stdout, stderr } = await engine('plan', '--json', ...args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

const processors = (pid) =>
  fs.readdirSync(`/proc/${pid}/task`).map((task) => /^Cpus_allowed_list:\s*(.*)$/m.exec(fs.readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8'))[1]);

const usable = () => /^Cpus_allowed_list:\s*(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1];

test('the plan says what the device has and what the model takes', async () => {
  const { device, models, recommended } = await plan('--model', nano);
  assert.ok(device.cores >= 1 && device.memory.available_bytes <= device.memory.total_bytes);
  const [model] = models;
  assert.equal(model.fits, true);
  assert.equal(model.useful_context, true);
  assert.equal(model.context, model.trained_context);
  assert.equal(model.pool.bytes, model.pool.pages * model.pool.page_bytes);
  assert.equal(model.memory_bytes, model.weights.copied_bytes + model.weights.mapped_bytes + model.compute_bytes + model.pool.bytes + model.warm_bytes);
  assert.equal(recommended, nano);
  const text = (await engine('plan', '--model', nano)).stdout;
  for (const word of ['cores', 'weights', 'requests', 'pages', 'adapters', 'threads']) assert.ok(text.includes(word), text);
});

test('a plan that cannot be says how much is missing', async () => {
  const { models, recommended } = await plan('--model', nano, '--memory', '20MiB');
  assert.equal(models[0].fits, false);
  assert.equal(models[0].missing_bytes, models[0].memory_bytes - (20 << 20));
  assert.match(models[0].problem, /missing/);
  assert.equal(recommended, null);
  const served = await engine('serve', '--model', nano, '--listen', `unix:${path.join(folder, 'x.sock')}`, '--memory', '20MiB');
  assert.equal(served.code, 1);
  assert.match(served.stderr, /are missing/);
});

test('the engine has the pool, requests and threads that were planned', async () => {
  const args = ['--memory', '150MiB', '--adapter-rank', '8'];
  const [planned] = (await plan('--model', nano, '--threads', '1', ...args)).models;
  const served = await EngineProcess.start({ pool: null, args });
  try {
    assert.equal(await served.metric('pages'), planned.pool.pages);
    assert.equal(await served.metric('page_bytes'), planned.pool.page_bytes);
    assert.match(served.log, new RegExp(`1 threads, ${planned.parallel} requests of ${planned.context} tokens`));
    const tooLong = await served.call('POST', '/v1/completions', { prompt: Array(planned.context + 1).fill(300), max_tokens: 1 });
    assert.equal(tooLong.status, 400, tooLong.text);
  } finally {
    await served.stop();
  }
});

test('the engine takes no more memory than planned', async () => {
  const [planned] = (await plan('--model', nano, '--threads', '1')).models;
  const served = await EngineProcess.start({ pool: null });
  try {
    await Promise.all(Array.from({ length: planned.parallel }, (_, i) => served.chat({ seed: i, max_tokens: 40 })));
    const held = Number(/^RssAnon:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${served.child.pid}/status`, 'utf8'))[1]) * 1024;
    // The sanitizers' own memory is not the engine's.
    if (!program.includes('asan') && !program.includes('tsan')) assert.ok(held <= planned.memory_bytes, `${held} > ${planned.memory_bytes}`);
  } finally {
    await served.stop();
  }
});

test('every thread of an engine stays on the processors that it was given', async () => {
  const cpu = usable();
  const served = await EngineProcess.start({ args: ['--cpus', cpu] });
  try {
    await served.text();
    assert.deepEqual([...new Set(processors(served.child.pid))], [cpu]);
  } finally {
    await served.stop();
  }
  assert.equal((await plan('--model', nano, '--cpus', cpu)).models[0].threads, 1);
});

test('processors that are not there are refused by name', async () => {
  for (const list of ['1000', '0,1000', 'all', '']) {
    const { code, stderr } = await engine('plan', '--cpus', list);
    assert.equal(code, 2, `${list}: ${stderr}`);
  }
  assert.match((await engine('plan', '--cpus', '1000')).stderr, /processor 1000 does not exist/);
});

test('Molly admits a model with the figures that its engine then has, and hands the processors on', async () => {
  const cpu = usable();
  const molly = await Molly.start({ config: `[models]\ncpus = "${cpu}"\nparallel = 3\ncontext = 512\n` });
  try {
    const planned = await molly.runJson(['plan', '--config', molly.configFile]);
    const [model] = planned.models;
    assert.deepEqual([model.name, model.runtime, model.threads, model.parallel, model.context], ['nano', 'molly-engine', 1, 3, 512]);
    assert.equal(planned.recommended, 'nano');
    const ready = await until(async () => {
      const status = await molly.runJson(['status']);
      const process = status.targets.find((target) => target.name === 'nano').process;
      return process.state === 'ready' ? { process, memory: status.memory } : null;
    }, 'the model to be ready', 20_000);
    assert.equal(ready.process.memory_bytes, model.memory_bytes);
    assert.equal(ready.memory.budget_bytes, planned.device.memory.for_models_bytes);
    assert.deepEqual([...new Set(processors(ready.process.pid))], [cpu]);
    const table = await molly.run(['plan', '--config', molly.configFile]);
    assert.match(table.stdout, /nano \* +Q8_0 +molly-engine +yes .* 3 x 512/);
  } finally {
    await molly.remove();
  }
});

test('llama-server is bound to the same processors', async () => {
  const cpu = usable();
  const molly = await Molly.start({ config: `[models]\nruntime = "llama-server"\ncpus = "${cpu}"\n` });
  try {
    const [model] = (await molly.runJson(['plan', '--config', molly.configFile])).models;
    assert.equal(model.runtime, 'llama-server');
    const process = await until(async () => {
      const found = (await molly.runJson(['status'])).targets.find((target) => target.name === 'nano').process;
      return found.state === 'ready' ? found : null;
    }, 'the model to be ready', 20_000);
    assert.equal(process.memory_bytes, model.memory_bytes);
    assert.deepEqual([...new Set(processors(process.pid))], [cpu]);
  } finally {
    await molly.remove();
  }
});

test('a configuration with processors that are not there is refused by its line', async () => {
  const file = path.join(folder, 'molly.toml');
  fs.writeFileSync(file, '[models]\ncpus = "1000"\n');
  const { code, stderr } = await new Promise((resolve) => execFile(program, ['policy', 'check', '--config', file, '--data', path.join(folder, 'data')], (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stderr })));
  assert.equal(code, 2);
  assert.match(stderr, /molly\.toml:2.*models\.cpus.*1000/);
});
