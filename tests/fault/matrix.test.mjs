// Each failure kind before the first token, with a healthy second target: the client must not notice.
// After the first token: a typed error event, never a silent end.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before } from 'node:test';
import * as answers from '../e2e/answers.mjs';
import { Molly, scenario, target, temporaryFolder } from '../e2e/harness.mjs';
import { closedPort, Upstream } from '../e2e/upstream.mjs';
import { chat, concurrency, inParallel, runs, summary } from './load.mjs';

const PER_TARGET = 4; // fewer failures in a row than open the breaker, so that each run meets the fault
const QUICK = { connect_seconds: '"1s"', first_byte_seconds: '"150ms"', idle_seconds: '"150ms"' };
const both = [false, true];

/** name, what the first target does, and whether the client streams. `url` replaces the scripted upstream's. */
const BEFORE = [
  { name: 'refused', url: async () => `http://127.0.0.1:${await closedPort()}/v1` },
  { name: 'dns', url: () => 'http://nowhere.invalid:9/v1', unproven: true },
  { name: 'tls: no TLS behind the port', url: (upstream) => upstream.url.replace('http:', 'https:'), fields: (other) => ({ pin: other.pin }), answer: answers.healthy() },
  { name: 'tls: another key than the pinned one', url: (upstream, other) => other.upstream.url, fields: (other) => ({ pin: '"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="' }) },
  { name: '429', answer: answers.status(429, {}, { 'retry-after': '1' }) },
  { name: '500', answer: answers.status(500) },
  { name: '502 with a page of HTML', answer: (exchange) => exchange.reply(502, '<html>bad gateway</html>', { 'content-type': 'text/html' }) },
  { name: '503', answer: answers.status(503) },
  { name: '401: our key is wrong', answer: answers.status(401) },
  { name: 'stall before the headers', answer: answers.stallBeforeHeaders() },
  { name: 'stall after the headers', answer: answers.stallInStream(0), streams: [true] },
  { name: 'stall with comments', answer: answers.stallWithComments(), streams: [true] },
  { name: 'reset before the headers', answer: answers.resetBeforeHeaders() },
  { name: 'reset in the headers', answer: answers.resetInHeaders() },
  { name: 'reset after the headers', answer: answers.resetInStream(0), streams: [true] },
  { name: 'close before the headers', answer: answers.closeBeforeHeaders() },
  { name: 'bytes that are no HTTP', answer: answers.notHttp() },
  { name: 'JSON that ends early', answer: answers.badJson(), streams: [false] },
  { name: 'JSON of another shape', answer: answers.wrongShape() },
  { name: 'a page of HTML with status 200', answer: answers.htmlPage() },
  { name: 'an event that is no JSON', answer: answers.badEvent(), streams: [true] },
  { name: 'a body shorter than announced', answer: answers.shortBody(), streams: [false] },
  { name: 'an empty body', answer: answers.emptyBody() },
  { name: 'a chunk that is cut', answer: answers.cutChunk(0), streams: [true] },
  { name: 'a stream that ends without a token', answer: answers.noDone(0), streams: [true] },
  { name: 'an error event first', answer: answers.errorEvent(0), streams: [true] },
  { name: 'a redirect', answer: answers.redirect('http://127.0.0.1:9/v1/chat/completions') },
];

const AFTER = [
  { name: 'reset', answer: answers.resetInStream(2) },
  { name: 'close', answer: answers.closeInStream(2) },
  { name: 'stall', answer: answers.stallInStream(2) },
  { name: 'an event that is no JSON', answer: answers.badEvent(2) },
  { name: 'a chunk that is cut', answer: answers.cutChunk(2) },
  { name: 'an end without finish and DONE', answer: answers.noDone(2) },
  { name: 'an error event', answer: answers.errorEvent(2) },
];

let faulty;
let good;
const other = {}; // a TLS server with a key of its own

before(async () => {
  faulty = await Upstream.start();
  good = await Upstream.start();
  good.answer(answers.healthy(['good']));
  const folder = temporaryFolder('certificate');
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1',
    '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', path.join(folder, 'key.pem'), '-out', path.join(folder, 'cert.pem')], { stdio: 'ignore' });
  const spki = execFileSync('sh', ['-c', `openssl x509 -in ${folder}/cert.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | openssl base64`]);
  other.pin = `"sha256//${spki.toString().trim()}"`;
  other.upstream = await Upstream.start({ certificate: { cert: fs.readFileSync(path.join(folder, 'cert.pem')), key: fs.readFileSync(path.join(folder, 'key.pem')) } });
  other.upstream.answer(answers.healthy(['secure']));
  fs.rmSync(folder, { recursive: true });
});
after(async () => {
  for (const upstream of [faulty, good, other.upstream]) await upstream?.close();
});

/** A configuration with enough faulty targets that none of their breakers opens; alias pair<i> = faulty i, then good. */
function configuration(url, fields = {}) {
  const count = Math.ceil(runs / PER_TARGET);
  const names = Array.from({ length: count }, (_, i) => i);
  return names.map((i) => target(`bad${i}`, url, { ...QUICK, ...fields })).join('') + target('good', good.url) +
    `[aliases]\n${names.map((i) => `pair${i} = ["bad${i}", "good"]`).join('\n')}\n`;
}
const pairOf = (run) => `pair${run % Math.ceil(runs / PER_TARGET)}`;

async function inject(fault, stream, fields = {}) {
  faulty.clear();
  good.requests = [];
  const url = fault.url ? await fault.url(faulty, other) : faulty.url;
  if (fault.answer) faulty.answer(fault.answer);
  const molly = await Molly.start({ config: configuration(url, { ...fields, ...fault.fields?.(other) }) });
  try {
    const results = [];
    await inParallel(runs, concurrency, async (run) => results.push(await chat(molly.url, pairOf(run), { stream })));
    return { results, log: molly.log(), stopped: await molly.stop(), overdue: molly.overdue };
  } finally {
    await molly.remove();
  }
}

for (const fault of BEFORE) {
  for (const stream of fault.streams ?? both) {
    scenario(`before the first token: ${fault.name}, ${stream ? 'streamed' : 'whole'}: ${runs} runs succeed on the next target`, { timeout: 300_000 }, async (context) => {
      const { results, log, overdue } = await inject(fault, stream);
      const succeeded = results.filter((one) => one.outcome === 'answer' && one.text === 'good').length;
      const seen = Map.groupBy(results, (one) => /after=bad\d+:(\w+)/.exec(one.route)?.[1] ?? 'none');
      const slowest = Math.max(...results.map((one) => one.milliseconds));
      context.diagnostic(`${succeeded}/${runs} succeeded, the slowest after ${Math.round(slowest)} ms; the first target's failure was seen as ` +
        [...seen].map(([kind, list]) => `${kind}: ${list.length}`).join(', '));
      assert.equal(results.filter((one) => one.outcome === 'hang').length, 0, 'no hang');
      assert.ok(succeeded >= runs * 0.999, `${summary(results)}\n${log.slice(-2000)}`);
      assert.equal(good.requests.length, succeeded);
      assert.equal(seen.get('none')?.length ?? 0, 0, 'every run met the fault');
      if (!fault.url) assert.ok(faulty.requests.length >= runs, `the fault was met only ${faulty.requests.length} times`);
      assert.ok(!overdue, 'it still stops in time');
    });
  }
}

for (const fault of AFTER) {
  scenario(`after the first token: ${fault.name}: ${runs} runs end in a typed error event`, { timeout: 300_000 }, async () => {
    // A first token that is late on a busy machine would be another fault, and fall back.
    const { results, log } = await inject(fault, true, { first_byte_seconds: '"20s"' });
    const typed = results.filter((one) => one.outcome === 'event' && one.text.startsWith('word0 word1')).length;
    assert.equal(typed, runs, `${summary(results, 'event')}\n${log.slice(-2000)}`);
    assert.equal(good.requests.length, 0, 'a stream that began is not answered twice');
  });
}

scenario('a target that keeps failing is left alone and comes back when it has recovered', { timeout: 60_000 }, async () => {
  faulty.clear().answer(answers.status(500));
  const molly = await Molly.start({ config: `${target('bad', faulty.url)}${target('good', good.url)}[aliases]\npair = ["bad", "good"]\n` });
  try {
    const results = [];
    await inParallel(200, 4, async () => results.push(await chat(molly.url, 'pair')));
    assert.ok(results.every((one) => one.text === 'good'), summary(results));
    assert.ok(faulty.requests.length < 30, `the breaker let ${faulty.requests.length} of 200 pass`);
    faulty.clear().answer(answers.healthy(['back']));
    const deadline = performance.now() + 40_000;
    for (let text = ''; text !== 'back';) {
      assert.ok(performance.now() < deadline, 'the target is still not used again');
      text = (await chat(molly.url, 'pair')).text;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  } finally {
    await molly.remove();
  }
});

scenario('when every target fails the client gets one typed error that says so, in time', { timeout: 60_000 }, async () => {
  faulty.clear().answer(answers.byForm(answers.status(503), answers.stallInStream(0)));
  const molly = await Molly.start({ config: `${target('bad', faulty.url, QUICK)}${target('worse', faulty.url, QUICK)}[aliases]\npair = ["bad", "worse"]\n` });
  try {
    for (const stream of both) {
      const result = await chat(molly.url, 'pair', { stream });
      assert.equal(result.outcome, 'error', `${result.outcome} ${result.detail}`);
      assert.match(result.detail, /bad/);
      assert.match(result.detail, /worse/);
      assert.ok(result.milliseconds < 5000);
    }
  } finally {
    await molly.remove();
  }
});
