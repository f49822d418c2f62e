// Processes that are killed under load: the control plane and the model server.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before } from 'node:test';
import * as answers from '../e2e/answers.mjs';
import { alive, descendants, Molly, scenario, sleep, target, top, until } from '../e2e/harness.mjs';
import { Upstream } from '../e2e/upstream.mjs';
import { chat, concurrency, runs, summary, tortureSteps } from './load.mjs';

let upstream;
before(async () => (upstream = await Upstream.start()));
after(() => upstream?.close());

/** Requests one after another until `stopped.now`; returns all results. */
async function keepAsking(stopped, ask) {
  const results = [];
  while (!stopped.now) {
    const result = await ask();
    results.push(result);
    if (result.outcome !== 'answer') await sleep(20);
  }
  return results;
}

scenario('the control plane killed under load: sockets, children and the audit log survive', { timeout: 120_000 }, async (context) => {
  upstream.clear().answer(answers.healthy(['one', 'two'], { gap: 5 }));
  const molly = await Molly.start({ config: target('up', upstream.url) });
  try {
    assert.equal((await chat(molly.url, 'nano', { max_tokens: 2, deadline: 60_000 })).outcome, 'answer');
    const models = molly.modelServers();
    assert.equal(models.length, 1);
    const stopped = { now: false };
    const workers = Array.from({ length: concurrency }, (_, i) => keepAsking(stopped, () => chat(molly.url, 'up', { stream: i % 2 === 0 })));
    const kills = Math.min(10, Math.max(3, Math.floor(runs / 30)));
    for (let i = 0; i < kills; ++i) {
      await sleep(600);
      const victim = await until(() => molly.controlPlane(), 'a control plane');
      process.kill(victim, 'SIGKILL');
      await until(() => molly.controlPlane() && molly.controlPlane() !== victim, 'another control plane');
      await until(async () => (await chat(molly.url, 'up')).outcome === 'answer', 'an answer after the crash');
    }
    stopped.now = true;
    const results = (await Promise.all(workers)).flat();
    context.diagnostic(`${kills} kills: ${summary(results)}`);
    assert.equal(results.filter((one) => one.outcome === 'hang').length, 0, summary(results));
    // The listening socket belongs to the parent: nobody is ever refused, at worst cut off.
    assert.equal(results.filter((one) => one.detail === 'ECONNREFUSED').length, 0, summary(results));
    const cut = results.filter((one) => one.outcome !== 'answer').length;
    assert.ok(cut <= kills * concurrency * 2, `${cut} requests failed at ${kills} kills: ${summary(results)}`);
    assert.deepEqual(molly.modelServers(), models, 'the model server is the same process');
    assert.equal((await chat(molly.url, 'nano', { max_tokens: 2 })).outcome, 'answer');
    const verified = await molly.run(['audit', 'verify']);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  } finally {
    await molly.remove();
  }
});

scenario('the model server killed under load: typed errors, fallback, and it comes back', { timeout: 240_000 }, async (context) => {
  upstream.clear().answer(answers.healthy(['good']));
  const molly = await Molly.start({ config: `${target('up', upstream.url)}[aliases]\npair = ["nano", "up"]\n` });
  try {
    assert.equal((await chat(molly.url, 'nano', { max_tokens: 2, deadline: 60_000 })).outcome, 'answer');
    const stopped = { now: false };
    const streams = Array.from({ length: 3 }, () => keepAsking(stopped, () => chat(molly.url, 'pair', { stream: true, max_tokens: 400, deadline: 60_000 })));
    const kills = Math.min(10, Math.max(3, Math.floor(runs / 20))); // each waits longer for the next start
    for (let i = 0; i < kills; ++i) {
      const pid = await until(() => molly.modelServers()[0], 'a model server', 40_000);
      await sleep(30 + (i * 97) % 400);
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // it ended by itself in the meantime
      }
    }
    stopped.now = true;
    const results = (await Promise.all(streams)).flat();
    context.diagnostic(`${kills} kills: ${summary(results)}`);
    for (const outcome of ['hang', 'silent', 'cut', 'error']) assert.equal(results.filter((one) => one.outcome === outcome).length, 0, summary(results));
    await until(async () => (await chat(molly.url, 'nano', { max_tokens: 2, deadline: 60_000 })).outcome === 'answer', 'the model to serve again', 60_000);
    assert.ok(descendants(molly.pid).every(alive), 'no zombie is left');
  } finally {
    await molly.remove();
  }
});

scenario(`supervisor torture: ${tortureSteps} random kills, loads and unloads leave no zombie and no stuck state`, { timeout: 600_000 }, async (context) => {
  const molly = await Molly.start({ config: '[models]\nkeep_alive = "2s"\nthreads = 1\n' });
  let seed = Number(process.env.TORTURE_SEED ?? 1);
  const random = (below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  try {
    const names = ['nano'];
    for (const name of ['first', 'second']) {
      const file = path.join(molly.folder, `${name}.gguf`);
      fs.copyFileSync(path.join(top, 'models/nano.gguf'), file);
      const added = await molly.run(['models', 'add', file], { timeout: 60_000 });
      assert.equal(added.code, 0, added.stdout + added.stderr);
      names.push(name);
    }
    const outcomes = {};
    const pending = new Set();
    const ask = (model) => {
      const asked = chat(molly.url, model, { stream: random(2) === 0, max_tokens: 1 + random(60), deadline: 60_000 }).then((result) => {
        outcomes[result.outcome] = (outcomes[result.outcome] ?? 0) + 1;
        pending.delete(asked);
      });
      pending.add(asked);
    };
    for (let step = 0; step < tortureSteps; ++step) {
      const servers = molly.modelServers();
      switch (random(5)) {
        case 0:
          if (servers.length) process.kill(servers[random(servers.length)], 'SIGKILL');
          break;
        case 1:
          if (servers.length) process.kill(servers[random(servers.length)], 'SIGTERM');
          break;
        case 2:
          await sleep(random(3000)); // long enough to unload, at times
          break;
        default:
          for (let i = 0; i <= random(3); ++i) ask(names[random(names.length)]);
      }
      await sleep(random(300));
    }
    await Promise.all(pending);
    context.diagnostic(JSON.stringify(outcomes));
    assert.equal(outcomes.hang ?? 0, 0, JSON.stringify(outcomes));
    assert.equal(outcomes.silent ?? 0, 0, JSON.stringify(outcomes));
    for (const name of names) {
      await until(async () => (await chat(molly.url, name, { max_tokens: 2, deadline: 60_000 })).outcome === 'answer', `${name} to serve again`, 90_000);
    }
    assert.ok(descendants(molly.pid).every(alive), 'no zombie is left');
    await until(() => molly.modelServers().length === 0, 'idle models to be unloaded', 30_000);
  } finally {
    await molly.remove();
  }
});
