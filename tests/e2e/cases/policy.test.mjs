// What policy lets through, what it refuses and how it explains itself; two Mollys in a chain.
import assert from 'node:assert/strict';
import { after, before, beforeEach } from 'node:test';
import OpenAI from 'openai';
import { failureOf, Molly, scenario as plain, target, until } from '../harness.mjs';
import { Upstream } from '../upstream.mjs';

const messages = [{ role: 'user', content: 'Say hello, sesame-4711.' }];
let near; // T1
let far; // T3: must never see what it may not
let molly;
let anaKey;
const scenario = (name, body) => plain(name, { molly: () => molly }, body);
const far3 = (fields = {}) => ({ tier: '"T3"', zone: '"eu"', provider: '"acme"', ...fields });

before(async () => {
  near = await Upstream.start();
  far = await Upstream.start();
  molly = await Molly.start({
    config: `
${target('near', near.url)}
${target('far', far.url, far3())}
[aliases]
both = ["far", "near"]
home = ["nano", "far"]
[[grant]]
tier = "T3"
provider = "acme"
zones = ["eu"]
members = ["ana"]
max_confidentiality = "public"
[[pin]]
match = { application = "clinic" }
confidentiality = "secret"
zones = ["device"]
`,
  });
  anaKey = (await molly.runJson(['keys', 'create', 'ana-laptop', '--member', 'ana', '--max-tier', 'T3'])).key;
});
beforeEach(() => [near, far].forEach((one) => one?.clear()));
after(async () => {
  await molly?.remove();
  await near?.close();
  await far?.close();
});

const ask = (model, { headers = {}, apiKey = 'unused', ...more } = {}) =>
  molly.client({ apiKey }).chat.completions.create({ model, messages, ...more }, { headers });
// A request without a key comes from the owner of this machine.
const asOwner = (model, headers = {}) => molly.post('/v1/chat/completions', { model, messages }, headers);

scenario('an external target is refused by default, and the refusal names target and rule', async () => {
  const answer = await asOwner('far');
  assert.equal(answer.status, 403);
  assert.equal(answer.headers.get('x-should-retry'), 'false');
  const { error } = await answer.json();
  assert.match(error.message, /far/);
  assert.match(error.message, /grant|T3/);
  assert.equal(far.connections, 0, 'not even a connection was made');
});

scenario('a refusal is a permission error for the client, which does not try again', async () => {
  const client = molly.client({ apiKey: anaKey, maxRetries: 3 });
  const started = performance.now();
  const error = await failureOf(client.chat.completions.create({ model: 'far', messages }));
  assert.ok(error instanceof OpenAI.PermissionDeniedError, `${error}`);
  assert.ok(performance.now() - started < 2000);
  assert.equal(far.requests.length, 0);
});

scenario('a grant opens an external target to its member for declared public data only', async () => {
  const { data, response } = await molly.client({ apiKey: anaKey }).chat.completions
    .create({ model: 'far', messages }, { headers: { 'x-molly-confidentiality': 'public' } }).withResponse();
  assert.equal(data.choices[0].message.content, 'Hello from upstream.');
  assert.match(response.headers.get('x-molly-route'), /far/);
  for (const confidentiality of ['internal', 'confidential', 'secret']) {
    far.clear();
    const error = await failureOf(ask('far', { apiKey: anaKey, headers: { 'x-molly-confidentiality': confidentiality } }));
    assert.equal(error.status, 403, confidentiality);
    assert.equal(far.requests.length, 0);
  }
});

scenario('the key that opened the way is not passed on', async () => {
  await ask('far', { apiKey: anaKey, headers: { 'x-molly-confidentiality': 'public' } });
  const [request] = far.requests;
  assert.ok(!JSON.stringify(request.headers).includes(anaKey.slice(6)), 'the client\'s key stays here');
  assert.ok(!Object.keys(request.headers).some((name) => name.startsWith('x-molly')), 'no internal header leaves');
});

scenario('a request falls back inside its clearance only', async () => {
  const { data, response } = await molly.client({ apiKey: anaKey }).chat.completions.create({ model: 'both', messages }).withResponse();
  assert.equal(data.choices[0].message.content, 'Hello from upstream.');
  assert.match(response.headers.get('x-molly-route'), /near/);
  assert.equal(far.requests.length, 0);
});

scenario('an external target is not the fallback of a local one that fails', async () => {
  near.answer((exchange) => exchange.reset());
  const error = await failureOf(ask('both', { apiKey: anaKey }));
  assert.ok(error.status >= 500, `${error.status}`);
  assert.equal(far.requests.length, 0);
});

scenario('a pin keeps an application\'s requests on this device', async () => {
  const answer = await asOwner('near', { 'x-molly-application': 'clinic' });
  assert.equal(answer.status, 403);
  assert.match((await answer.json()).error.message, /near/);
  assert.equal(near.requests.length, 0);
});

scenario('headers narrow and never widen', async () => {
  assert.equal((await asOwner('near', { 'x-molly-max-tier': 'T0' })).status, 403);
  assert.equal((await asOwner('near', { 'x-molly-zones': 'device' })).status, 403);
  assert.equal((await asOwner('near', { 'x-molly-zones': 'device, lan' })).status, 200);
  assert.equal((await asOwner('far', { 'x-molly-max-tier': 'T3', 'x-molly-confidentiality': 'public' })).status, 403);
  assert.equal(far.connections === 0 || far.requests.length === 0, true);
});

scenario('a restriction that cannot be read is an error', async () => {
  for (const headers of [{ 'x-molly-max-tier': 'T9' }, { 'x-molly-confidentiality': 'sekret' }, { 'x-molly-clearance': 'nonsense' }]) {
    assert.equal((await asOwner('near', headers)).status, 400, JSON.stringify(headers));
  }
  assert.equal(near.requests.length, 0);
});

scenario('a decision can be explained afterwards, without content', async () => {
  const answer = await asOwner('near');
  const trace = answer.headers.get('x-molly-trace');
  assert.ok(trace);
  const explained = await until(async () => {
    const result = await molly.run(['explain', trace]);
    return result.code === 0 ? result.stdout : null;
  }, 'molly explain to know the trace', 5000);
  assert.match(explained, /near/);
  assert.match(explained, /far/, 'what was excluded is named');
  assert.ok(!explained.includes('sesame-4711'));
  const json = await molly.run(['explain', trace, '--json']);
  assert.equal(json.code, 0, json.stderr);
  JSON.parse(json.stdout);
});

scenario('an explanation names the rule that decided', async () => {
  const ruleFor = async (name, answer) => {
    const record = await molly.runJson(['explain', answer.headers.get('x-molly-trace')]);
    return record.targets.find((one) => one.target === name);
  };
  const pinned = await asOwner('near', { 'x-molly-application': 'clinic' });
  assert.deepEqual(await ruleFor('near', pinned), { target: 'near', tier: 'T1', verdict: 'zone_not_allowed', why: 'its zone is not among those that the request allows', rule: 'pin 1 (application clinic)' });
  const notForMe = await ruleFor('far', await asOwner('far'));
  assert.equal(notForMe.verdict, 'not_granted');
  assert.equal(notForMe.rule, 'grant 1 (T3, provider acme)');
});

scenario('a parameter that the only allowed target cannot honour is the request\'s fault, not a refusal', async () => {
  const answer = await molly.post('/v1/completions', { model: 'home', prompt: 'def f(', suffix: 'return x' });
  assert.equal(answer.status, 400);
  const { error } = await answer.json();
  assert.match(error.message, /nano: does not honour suffix/);
  assert.match(error.message, /far: no grant/);
});

scenario('a refusal can be explained afterwards', async () => {
  const answer = await asOwner('far');
  const trace = answer.headers.get('x-molly-trace');
  assert.ok(trace, 'a refusal carries its trace');
  await until(async () => (await molly.run(['explain', trace])).stdout.includes('far'), 'molly explain to know the refusal', 5000);
});

scenario('the audit log verifies and holds no content', async () => {
  await asOwner('near');
  const result = await molly.run(['audit', 'verify']);
  assert.equal(result.code, 0, result.stdout + result.stderr);
  const { default: fs } = await import('node:fs');
  const { default: path } = await import('node:path');
  const files = fs.readdirSync(path.join(molly.data, 'audit'), { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  assert.ok(files.length > 0);
  for (const file of files) {
    const bytes = fs.readFileSync(path.join(file.parentPath, file.name));
    assert.ok(!bytes.includes('sesame-4711') && !bytes.includes(anaKey), `${file.name} holds what it must not`);
  }
});

scenario('nothing in the data folder or the log holds the prompt or a key', async () => {
  await asOwner('near');
  const { default: fs } = await import('node:fs');
  const { default: path } = await import('node:path');
  assert.equal(fs.statSync(molly.data).mode & 0o077, 0, 'the data folder is the owner\'s only');
  for (const file of fs.readdirSync(molly.data, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())) {
    const bytes = fs.readFileSync(path.join(file.parentPath, file.name));
    assert.ok(!bytes.includes('sesame-4711'), `${file.name} holds the prompt`);
    assert.ok(!bytes.includes(anaKey), `${file.name} holds a key`);
  }
  assert.ok(!molly.log().includes('sesame-4711') && !molly.log().includes(anaKey));
});

plain('two Mollys in a chain: the second never uses more than the first allows', { timeout: 60_000 }, async () => {
  const external = await Upstream.start();
  const local = await Upstream.start();
  // The second would let anybody with this key send public data to its T3.
  const second = await Molly.start({
    config: `
${target('external', external.url, far3())}
${target('office', local.url)}
[aliases]
best = ["external", "office"]
[[grant]]
tier = "T3"
provider = "acme"
zones = ["eu"]
members = ["first"]
max_confidentiality = "public"
`,
  });
  const secondKey = (await second.runJson(['keys', 'create', 'first-molly', '--member', 'first', '--max-tier', 'T3'])).key;
  const first = await Molly.start({
    env: { SECOND_KEY: secondKey },
    config: `
${target('next', `${second.url}/v1`, { model: '"best"', molly: 'true', key: '"env:SECOND_KEY"' })}
${target('next-external', `${second.url}/v1`, { model: '"external"', molly: 'true', key: '"env:SECOND_KEY"' })}
`,
  });
  try {
    const direct = await second.client({ apiKey: secondKey }).chat.completions.create({ model: 'external', messages }, { headers: { 'x-molly-confidentiality': 'public' } });
    assert.equal(direct.choices[0].finish_reason, 'stop');
    assert.equal(external.requests.length, 1, 'the second alone may use its T3');

    // The first allows T0 and T1 only: its clearance travels along and the second must keep to it.
    const declared = { headers: { 'x-molly-confidentiality': 'public' } };
    const { data, response } = await first.client().chat.completions.create({ model: 'next', messages }, declared).withResponse().catch(async () =>
      ({ data: await (await first.post('/v1/chat/completions', { model: 'next', messages }, declared.headers)).json(), response: { headers: new Headers() } }));
    assert.equal(data.choices?.[0].message.content, 'Hello from upstream.', JSON.stringify(data));
    assert.equal(local.requests.length, 1, 'the second fell back to what the first allows');
    assert.equal(external.requests.length, 1, 'the first did not allow T3');
    const refused = await first.post('/v1/chat/completions', { model: 'next-external', messages }, declared.headers);
    assert.ok(refused.status >= 400, `${refused.status}`);
    assert.equal(external.requests.length, 1);
    assert.match(response.headers.get('x-molly-route') ?? 'next', /next/);

    local.answer((exchange) => exchange.reset());
    const failed = await first.post('/v1/chat/completions', { model: 'next', messages, stream: true }, declared.headers);
    const text = await failed.text();
    assert.ok(failed.status >= 400 || /"error"/.test(text), text);
    assert.equal(external.requests.length, 1, 'a failure does not widen the clearance');
  } finally {
    await first.remove();
    await second.remove();
    await external.close();
    await local.close();
  }
});
