// Who may talk to the server: keys, Host and Origin, the owner's socket.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import OpenAI from 'openai';
import { withUpstream } from '../fixture.mjs';
import { failureOf, Molly, sleep, scenario as plain, target, temporaryFolder, until } from '../harness.mjs';
import { Upstream } from '../upstream.mjs';

const fixture = withUpstream();
const { scenario } = fixture;
const ask = { model: 'up', messages: [{ role: 'user', content: 'Say hello.' }] };

/** A request with headers that fetch would not let through. */
function request(url, { headers = {}, method = 'POST', body = JSON.stringify(ask), socketPath } = {}) {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname } = new URL(url);
    const made = http.request({ hostname, port, path: pathname, method, socketPath, headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers } }, (answer) => {
      let text = '';
      answer.on('data', (bytes) => (text += bytes));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    made.setTimeout(10_000, () => made.destroy(new Error('no answer in 10 s')));
    made.on('error', reject);
    made.end(body);
  });
}

scenario('keys are shown once, listed without their secret, and revoked', async () => {
  const { molly } = fixture;
  const created = await molly.runJson(['keys', 'create', 'laptop']);
  assert.match(created.key, /^molly_[0-9a-f]{8}_[A-Za-z0-9_-]{43}_[A-Za-z0-9_-]{6}$/);
  const listed = await molly.run(['keys', 'list', '--json']);
  assert.ok(listed.stdout.includes(created.id) && !listed.stdout.includes(created.key));
  const client = molly.client({ apiKey: created.key });
  assert.equal((await client.chat.completions.create(ask)).choices[0].finish_reason, 'stop');
  assert.equal((await molly.run(['keys', 'revoke', created.id])).code, 0);
  await until(async () => (await client.chat.completions.create(ask).then(() => null, (error) => error)) instanceof OpenAI.AuthenticationError, 'the revoked key to be refused', 5000);
});

scenario('once a key exists, a wrong key is refused on loopback too', async () => {
  const { key } = await fixture.molly.runJson(['keys', 'create', 'other']);
  const last = key.at(-1) === 'A' ? 'B' : 'A';
  for (const wrong of [`${key.slice(0, -1)}${last}`, key.replace(/_[0-9a-f]{8}_/, '_00000000_'), `molly_deadbeef_${'x'.repeat(43)}_abcdef`]) {
    const error = await failureOf(fixture.molly.client({ apiKey: wrong }).chat.completions.create(ask));
    assert.ok(error instanceof OpenAI.AuthenticationError, `${error}`);
    assert.ok(!error.message.includes(wrong), 'the key is not repeated');
  }
  assert.equal(fixture.upstream.requests.length, 0);
});

scenario('a key works as bearer token and as x-api-key', async () => {
  const { key } = await fixture.molly.runJson(['keys', 'create', 'both-ways']);
  for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
    assert.equal((await fixture.molly.post('/v1/chat/completions', ask, headers)).status, 200);
  }
});

scenario('a key reaches only the models in its scope', async () => {
  const { key } = await fixture.molly.runJson(['keys', 'create', 'narrow', '--model', 'something-else']);
  const error = await failureOf(fixture.molly.client({ apiKey: key }).chat.completions.create(ask));
  assert.ok([403, 404].includes(error.status), `${error.status}`);
  assert.equal(fixture.upstream.requests.length, 0);
});

scenario('a foreign Host is refused, so that a rebound name reaches nothing', async () => {
  const url = `${fixture.molly.url}/v1/chat/completions`;
  for (const host of ['evil.example', 'evil.example:80', '127.0.0.1.evil.example']) {
    const answer = await request(url, { headers: { host } });
    assert.ok([403, 421, 400].includes(answer.status), `${host}: ${answer.status}`);
  }
  const { port } = new URL(url);
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`]) assert.equal((await request(url, { headers: { host } })).status, 200, host);
  assert.equal(fixture.upstream.requests.length, 2);
});

scenario('a foreign Origin is refused', async () => {
  const url = `${fixture.molly.url}/v1/chat/completions`;
  for (const origin of ['https://evil.example', 'null', 'http://localhost.evil.example']) {
    assert.equal((await request(url, { headers: { origin } })).status, 403, origin);
  }
  assert.equal((await request(url, { headers: { origin: fixture.molly.url } })).status, 200);
  const preflight = await request(url, { method: 'OPTIONS', body: '', headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' } });
  assert.ok(!preflight.headers['access-control-allow-origin'], 'no permission for a foreign page');
  assert.equal(fixture.upstream.requests.length, 1);
});

scenario('the owner\'s unix socket answers without a key', async () => {
  const { default: fs } = await import('node:fs');
  const { socket } = fixture.molly.address;
  assert.equal(fs.statSync(socket).mode & 0o077, 0, 'nobody else can open it');
  const answer = await request('http://molly/v1/chat/completions', { socketPath: socket, headers: { host: 'molly' } });
  assert.equal(answer.status, 200, answer.text);
});

function outsideAddress() {
  return Object.values(os.networkInterfaces()).flat().find((one) => one.family === 'IPv4' && !one.internal)?.address ?? null;
}

plain('off loopback nothing is served without a key', { timeout: 60_000 }, async (context) => {
  const address = outsideAddress();
  if (!address) return context.skip('this machine has no address but loopback');
  const folder = temporaryFolder();
  const upstream = await Upstream.start();
  const config = target('up', upstream.url);
  const refused = await failureOf(Molly.start({ config, listen: `${address}:0`, folder }));
  assert.match(refused.message, /key/, 'without any key it says what to do');
  const first = await Molly.start({ config, folder });
  const { key } = await first.runJson(['keys', 'create', 'lan']);
  await first.stop();
  const molly = await Molly.start({ config, listen: `${address}:0`, folder });
  try {
    const route = `${molly.url}/v1/chat/completions`;
    assert.equal((await request(route)).status, 401);
    assert.equal((await request(`${molly.url}/v1/models`, { method: 'GET', body: '' })).status, 401);
    assert.equal((await request(route, { headers: { authorization: `Bearer ${key}` } })).status, 200);
    assert.equal(upstream.requests.length, 1);
  } finally {
    await molly.remove();
    await upstream.close();
  }
});

scenario('a client that sends its request too slowly is cut off', async () => {
  const slow = await Molly.start({ config: `[server]\nheader_seconds = 1\nbody_seconds = 1\n${target('up', fixture.upstream.url)}` });
  try {
    const { hostname, port } = new URL(slow.url);
    for (const bytes of ['POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n', `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"mo`]) {
      const text = await new Promise((resolve, reject) => {
        let received = '';
        const socket = net.connect(Number(port), hostname, () => socket.write(bytes));
        socket.on('data', (data) => (received += data));
        socket.on('close', () => resolve(received));
        socket.on('error', () => resolve(received));
        sleep(8000).then(() => reject(new Error('a slow client was waited for')));
      });
      assert.ok(text === '' || /^HTTP\/1\.1 408 /.test(text), text.slice(0, 80));
    }
  } finally {
    await slow.remove();
  }
});
