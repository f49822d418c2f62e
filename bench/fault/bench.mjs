// Failover: from the moment when the first target's failure can be seen (its bytes are written, its deadline is over)
// to the arrival of the request at the second. Crash: from SIGKILL of the model server in the middle of a stream to
// the typed error at the client. One request at a time; the upstreams live in this process and share its clock.
import * as answers from '../../tests/e2e/answers.mjs';
import { Molly, target, until } from '../../tests/e2e/harness.mjs';
import { closedPort, Upstream } from '../../tests/e2e/upstream.mjs';
import { machine, percentile, quick, rounded, table, write } from '../report.mjs';

const RUNS = quick ? 40 : 400;
const STALL_RUNS = quick ? 10 : 100;
const CRASHES = quick ? 5 : 40;
const PER_TARGET = 4; // failures in a row that do not yet open a breaker
const FIRST_BYTE = 50; // milliseconds, of the targets that stall

/** `failedAt` gives the clock when the failure could first be seen. */
const KINDS = [
  { name: 'reset', answer: answers.resetBeforeHeaders() },
  { name: 'closed connection', answer: answers.closeBeforeHeaders() },
  { name: '429', answer: answers.status(429) },
  { name: '500', answer: answers.status(500) },
  { name: 'no HTTP', answer: answers.notHttp() },
  { name: 'no JSON', answer: answers.badJson() },
  { name: 'stream without a token', answer: answers.noDone(0), stream: true },
  { name: 'stall', answer: answers.stallBeforeHeaders(), runs: STALL_RUNS, failedAt: (request) => request.receivedAt + FIRST_BYTE },
  { name: 'refused', refused: true, failedAt: (_, sentAt) => sentAt },
];

async function ask(molly, model, { stream = false, ...more } = {}) {
  const answer = await fetch(`${molly.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, signal: AbortSignal.timeout(30_000),
    body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Say hello.' }], ...more }),
  });
  if (!answer.ok) throw new Error(`status ${answer.status}: ${await answer.text()}`);
  return answer;
}

async function failoverTimes(kind) {
  const first = await Upstream.start();
  const second = await Upstream.start();
  second.answer(answers.healthy(['good']));
  const brokenAt = new WeakMap();
  if (kind.answer) {
    first.answer((exchange) => {
      brokenAt.set(exchange.request, performance.now());
      return kind.answer(exchange);
    });
  }
  const runs = kind.runs ?? RUNS;
  const count = Math.ceil(runs / PER_TARGET);
  const url = kind.refused ? `http://127.0.0.1:${await closedPort()}/v1` : first.url;
  const names = Array.from({ length: count }, (_, i) => i);
  const config = names.map((i) => target(`bad${i}`, url, { first_byte_seconds: `"${kind.failedAt ? FIRST_BYTE : 5000}ms"` })).join('') + target('good', second.url) +
    `[aliases]\ngood-only = "good"\n${names.map((i) => `pair${i} = ["bad${i}", "good"]`).join('\n')}\n`;
  const molly = await Molly.start({ config });
  try {
    for (let i = 0; i < 20; ++i) await (await ask(molly, 'good-only', kind)).text();
    const times = [];
    for (let run = 0; run < runs; ++run) {
      first.requests = [];
      second.requests = [];
      const sentAt = performance.now();
      const text = await (await ask(molly, `pair${run % count}`, kind)).text();
      if (!text.includes('good') || second.requests.length !== 1) throw new Error(`${kind.name}: no failover: ${text.slice(0, 200)}`);
      const seen = kind.failedAt ? kind.failedAt(first.last, sentAt) : brokenAt.get(first.last);
      times.push(second.last.receivedAt - seen);
    }
    return times;
  } finally {
    await molly.remove();
    await first.close();
    await second.close();
  }
}

/** Calls `onWord` once words flow; resolves to the time of the typed error, or null when the stream ended well. */
async function errorTime(answer, onWord) {
  let text = '';
  const decoder = new TextDecoder();
  for await (const bytes of answer.body) {
    const now = performance.now();
    text += decoder.decode(bytes, { stream: true });
    if (/"error":\s*\{/.test(text)) return now;
    if (text.split('"content":').length > 3) onWord();
    if (text.includes('[DONE]')) return null;
  }
  throw new Error(`the stream ended in silence: ${text.slice(-300)}`);
}

/** Kills the model server of a fresh Molly in the middle of a stream: each crash is the first, so that no back-off is measured. */
async function crashOnce() {
  const molly = await Molly.start();
  try {
    await (await ask(molly, 'nano', { max_tokens: 1 })).text();
    const answer = await ask(molly, 'nano', { stream: true, max_tokens: 900, ignore_eos: true });
    let killedAt = null;
    const seenAt = await errorTime(answer, () => {
      if (killedAt !== null) return;
      killedAt = performance.now();
      for (const pid of molly.modelServers()) process.kill(pid, 'SIGKILL');
    });
    if (seenAt === null || killedAt === null) throw new Error('the model had finished before it could be killed');
    await until(async () => ask(molly, 'nano', { max_tokens: 1 }).then((one) => one.text(), () => null), 'the model to serve again', 60_000);
    return { error: seenAt - killedAt, recovery: performance.now() - killedAt };
  } finally {
    await molly.remove();
  }
}

async function crashTimes() {
  const crashes = [];
  for (let i = 0; i < CRASHES; ++i) crashes.push(await crashOnce());
  return { errors: crashes.map((one) => one.error), recoveries: crashes.map((one) => one.recovery) };
}

async function controlPlaneTimes() {
  const upstream = await Upstream.start();
  const times = [];
  for (let i = 0; i < (quick ? 3 : 20); ++i) {
    const molly = await Molly.start({ config: target('up', upstream.url) }); // fresh: repeated crashes are held back
    try {
      await (await ask(molly, 'up')).text();
      const killedAt = performance.now();
      process.kill(molly.controlPlane(), 'SIGKILL');
      await until(async () => ask(molly, 'up').then((one) => one.text(), () => null), 'an answer', 30_000);
      times.push(performance.now() - killedAt);
    } finally {
      await molly.remove();
    }
  }
  await upstream.close();
  return times;
}

const summary = (times) => ({ runs: times.length, median_ms: rounded(percentile(times, 0.5), 3), p99_ms: rounded(percentile(times, 0.99), 3), worst_ms: rounded(percentile(times, 1), 3) });

async function main() {
  const figures = { benchmark: 'fault', quick, machine: machine(), failover: {} };
  for (const kind of KINDS) {
    figures.failover[kind.name] = summary(await failoverTimes(kind));
    process.stderr.write(`${kind.name}: ${JSON.stringify(figures.failover[kind.name])}\n`);
  }
  const { errors, recoveries } = await crashTimes();
  figures.crash_to_typed_error = summary(errors);
  figures.crash_to_next_answer = summary(recoveries);
  figures.control_plane_crash_to_next_answer = summary(await controlPlaneTimes());
  // A deadline is noticed at the next sweep over all deadlines. From outside that cannot be told from the failover
  // itself, so that stalls stand apart: what they show is mostly how late the deadline was noticed.
  figures.deadline_to_next_target = figures.failover.stall;
  delete figures.failover.stall;
  const medians = Object.values(figures.failover).map((one) => one.median_ms);
  const tails = Object.values(figures.failover).map((one) => one.p99_ms);
  figures.goals = [
    { goal: 'failover after detection, worst median of all kinds, ms', value: Math.max(...medians), bound: '<= 5' },
    { goal: 'failover after detection, worst p99 of all kinds, ms', value: Math.max(...tails), bound: '<= 5' },
    { goal: 'typed error after a crash, worst, ms', value: figures.crash_to_typed_error.worst_ms, bound: '<= 1000' },
  ].map((one) => ({ ...one, reached: one.value !== null && one.value <= Number(one.bound.slice(3)) }));
  const row = (name, one) => [name, one.runs, one.median_ms, one.p99_ms, one.worst_ms];
  const m = figures.machine;
  const text = `# Faults

Milliseconds from the moment when a target's failure can be seen to the arrival of the request at the next one, one request at a
time. "refused" counts from the client's call. Machine: ${m.processor}, ${m.cores} cores, load ${m.load} at the start.

${table(['failover', 'runs', 'median', 'p99', 'worst'], Object.entries(figures.failover).map(([name, one]) => row(name, one)))}

${table(['crash or silence', 'runs', 'median', 'p99', 'worst'], [
    row('target silent: request at the next one, counted from the end of the deadline', figures.deadline_to_next_target),
    row('model server killed mid-stream: typed error at the client', figures.crash_to_typed_error),
    row('model server killed mid-stream: next answer of the same model', figures.crash_to_next_answer),
    row('control plane killed: next answer', figures.control_plane_crash_to_next_answer),
  ])}

${table(['goal', 'measured', 'bound', 'reached'], figures.goals.map((one) => [one.goal, one.value, one.bound, one.reached ? 'yes' : 'NO']))}
`;
  const names = Object.keys(figures.failover);
  const plot = `$data << EOD\n${names.map((name) => `"${name}" ${figures.failover[name].median_ms} ${figures.failover[name].p99_ms}`).join('\n')}\nEOD
set title "Failover after detection, milliseconds (bound: 5)"
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.7
set xtics scale 0 rotate by -20
set yrange [0:*]
set key top left
plot $data using 2:xtic(1) title "median" lc rgb "#4477aa", '' using 3 title "p99" lc rgb "#cc6677", 5 with lines lc rgb "#888888" dashtype 2 title "bound"`;
  write('fault', { text, figures, plot });
  if (process.env.CHECK === '1' && !figures.goals.every((one) => one.reached)) process.exitCode = 1;
}

await main();
