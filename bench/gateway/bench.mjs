// Measures every gateway in turn, round after round, and reports medians over rounds and ratios to nginx.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { cpuTime, machine, median, quick, residentMiB, rounded, table, write } from '../report.mjs';
import { LOAD_CORE, startAll, stopAll } from './gateways.mjs';
import { CHUNKS } from './sse_upstream.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? (quick ? 2 : 5));
const SECONDS = quick ? 1 : 3;
const SOAK_REQUESTS = quick ? 100_000 : 1_000_000;
const SOAK_WARMUP = 20_000;
const script = fileURLToPath(new URL('load.lua', import.meta.url));

/** wrk against one route; resolves to { rps, p50, p99, failed, requests, cpu } (microseconds; cpu per request). */
async function load(gateway, route, connections, seconds, stream = false) {
  const { url, model, headers } = gateway.routes[route];
  const environment = {
    ...process.env, LOAD_MODEL: model, LOAD_STREAM: stream ? '1' : '0',
    LOAD_HEADERS: Object.entries(headers).map(([name, value]) => `${name}=${value}`).join('\n'),
  };
  const before = cpuTime(gateway.pids());
  const child = spawn('taskset', ['-c', LOAD_CORE, 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, url], { env: environment });
  let output = '';
  for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (bytes) => (output += bytes));
  await new Promise((resolve) => child.on('close', resolve));
  const spent = cpuTime(gateway.pids()) - before;
  const line = /RESULT (\{.*\})/.exec(output);
  if (!line) throw new Error(`wrk failed against ${gateway.name}: ${output}`);
  const result = JSON.parse(line[1]);
  return { rps: result.requests / result.seconds, p50: result.p50, p99: result.p99, failed: result.failed, requests: result.requests, cpu: spent / 1000 / result.requests };
}

/** One request before measuring: the gateway must give the whole answer, or its figures mean nothing. */
async function check(gateway, route, stream) {
  const { url, model, headers } = gateway.routes[route];
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, signal: AbortSignal.timeout(20_000),
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 32, stream }),
  });
  const text = await answer.text();
  const words = text.split('tok ').length - 1;
  if (!answer.ok || words !== 32) throw new Error(`${gateway.name} ${route}: status ${answer.status}, ${words} words: ${text.slice(0, 300)}`);
}

const PLAN = [
  { id: 'one', route: 'fast', connections: 1 },
  { id: 'sixteen', route: 'fast', connections: 16 },
  { id: 'stream', route: 'sse', connections: 16, stream: true },
  { id: 'external', route: 't3', connections: 16 },
];

async function measureRound(gateways, samples) {
  for (const step of PLAN) {
    for (const gateway of gateways) {
      if (!gateway.routes[step.route]) continue;
      (samples[gateway.name][step.id] ??= []).push(await load(gateway, step.route, step.connections, SECONDS, step.stream));
    }
  }
}

async function soak(gateway) {
  let done = 0;
  const runUntil = async (count) => {
    while (done < count) done += (await load(gateway, 'fast', 16, quick ? 2 : 5)).requests;
  };
  await runUntil(SOAK_WARMUP);
  const before = residentMiB(gateway.pids());
  done = 0;
  await runUntil(SOAK_REQUESTS);
  const after = residentMiB(gateway.pids());
  return { requests: done, before_mib: rounded(before, 2), after_mib: rounded(after, 2), growth_mib: rounded(after - before, 2) };
}

function summarise(gateways, samples) {
  const of = (name, id, field) => samples[name][id]?.map((one) => one[field]) ?? [];
  const figures = {};
  for (const { name, pids } of gateways) {
    figures[name] = {
      c1_p50_us: rounded(median(of(name, 'one', 'p50')), 0), c1_p99_us: rounded(median(of(name, 'one', 'p99')), 0),
      c16_rps: rounded(median(of(name, 'sixteen', 'rps')), 0), c16_p50_us: rounded(median(of(name, 'sixteen', 'p50')), 0), c16_p99_us: rounded(median(of(name, 'sixteen', 'p99')), 0),
      cpu_us_per_request: rounded(median(of(name, 'sixteen', 'cpu'))),
      streams_per_second: rounded(median(of(name, 'stream', 'rps')), 0), stream_p50_us: rounded(median(of(name, 'stream', 'p50')), 0), stream_p99_us: rounded(median(of(name, 'stream', 'p99')), 0),
      cpu_us_per_chunk: rounded(median(of(name, 'stream', 'cpu')) / CHUNKS, 2),
      rss_mib: rounded(residentMiB(pids())),
      failed: Object.values(samples[name]).flat().reduce((sum, one) => sum + one.failed, 0),
    };
    if (pids().length === 0) Object.assign(figures[name], { cpu_us_per_request: null, cpu_us_per_chunk: null, rss_mib: null });
  }
  if (samples.Molly.external) {
    figures.Molly.t3_rps = rounded(median(of('Molly', 'external', 'rps')), 0);
    figures.Molly.t3_p50_us = rounded(median(of('Molly', 'external', 'p50')), 0);
    figures.Molly.t3_cpu_us_per_request = rounded(median(of('Molly', 'external', 'cpu')));
  }
  const rounds = (name, id, field) => of(name, id, field);
  figures.ratios = {
    cpu_per_request_to_nginx: rounded(median(rounds('Molly', 'sixteen', 'cpu').map((value, i) => value / rounds('nginx', 'sixteen', 'cpu')[i])), 2),
    cpu_per_chunk_to_nginx: rounded(median(rounds('Molly', 'stream', 'cpu').map((value, i) => value / rounds('nginx', 'stream', 'cpu')[i])), 2),
    streams_to_nginx: rounded(median(rounds('Molly', 'stream', 'rps').map((value, i) => value / rounds('nginx', 'stream', 'rps')[i])), 2),
    added_p50_over_nginx_us: rounded(median(rounds('Molly', 'one', 'p50').map((value, i) => value - rounds('nginx', 'one', 'p50')[i])), 0),
  };
  if (samples.Portkey) figures.ratios.portkey_cpu_per_request_to_molly = rounded(figures.Portkey.cpu_us_per_request / figures.Molly.cpu_us_per_request, 1);
  return figures;
}

function goals(figures) {
  const { Molly, ratios, soak } = figures;
  return [
    ['CPU per request, to nginx', ratios.cpu_per_request_to_nginx, '<= 2.0', ratios.cpu_per_request_to_nginx <= 2.0],
    ['requests/s on one core, 16 connections', Molly.c16_rps, '>= 15000', Molly.c16_rps >= 15_000],
    ['median latency at 1 connection over nginx, us', ratios.added_p50_over_nginx_us, '<= 60', ratios.added_p50_over_nginx_us <= 60],
    ['CPU per streamed chunk, us', Molly.cpu_us_per_chunk, '<= 20', Molly.cpu_us_per_chunk <= 20],
    ['RSS of all its processes, MiB', Math.max(Molly.rss_mib, soak.after_mib), '<= 40', Math.max(Molly.rss_mib, soak.after_mib) <= 40],
    [`RSS growth over ${soak.requests} requests, MiB`, soak.growth_mib, '< 1', soak.growth_mib < 1],
  ].map(([goal, value, bound, reached]) => ({ goal, value, bound, reached }));
}

function report(figures, names) {
  const row = (name) => {
    const f = figures[name];
    return [name, f.c1_p50_us, f.c1_p99_us, f.c16_rps, f.c16_p50_us, f.c16_p99_us, f.cpu_us_per_request, f.streams_per_second, f.cpu_us_per_chunk, f.rss_mib];
  };
  const m = figures.machine;
  const external = figures.Molly.t3_rps === undefined ? '' : `\nMolly to a T3 target, each audit record synced to disk before the request leaves (16 connections): ${figures.Molly.t3_rps} requests/s, ` +
    `median ${figures.Molly.t3_p50_us} us, ${figures.Molly.t3_cpu_us_per_request} CPU us per request.\n`;
  return `# Gateways

Same upstreams, interleaved, ${figures.rounds} rounds of ${figures.seconds} s each (medians), the gateway on one core, load and upstreams on the other.
Molly with its whole pipeline on: key, policy, audit, metrics. nginx ${m.nginx} as a plain reverse proxy. Machine: ${m.processor}, ${m.cores} cores, load ${m.load} at the start.

${table(['path', 'p50 us, c=1', 'p99 us, c=1', 'requests/s, c=16', 'p50 us, c=16', 'p99 us, c=16', 'CPU us/request', `streams/s of ${CHUNKS}, c=16`, 'CPU us/chunk', 'RSS MiB'], names.map(row))}

${table(['goal', 'measured', 'bound', 'reached'], figures.goals.map((one) => [one.goal, one.value, one.bound, one.reached ? 'yes' : 'NO']))}
${external}`;
}

function plot(figures, names) {
  const gateways = names.filter((name) => name !== 'direct');
  const data = (field) => `$${field} << EOD\n${gateways.map((name) => `"${name}" ${figures[name][field] ?? 0}`).join('\n')}\nEOD\n`;
  const panel = (field, title) => `set title "${title}"\nplot $${field} using 0:2:(0.6):xtic(1) with boxes fill solid 0.7 lc rgb "#4477aa", '' using 0:2:2 with labels offset 0,0.7\n`;
  return `${['cpu_us_per_request', 'cpu_us_per_chunk', 'c16_rps'].map(data).join('')}
set multiplot layout 1,3
set key off
set style fill solid
set logscale y
set yrange [1:*]
set offsets 0.5,0.5,0,0
set xtics scale 0
${panel('cpu_us_per_request', 'CPU us per request')}${panel('cpu_us_per_chunk', 'CPU us per streamed chunk')}${panel('c16_rps', 'requests/s, one core')}unset multiplot`;
}

async function main() {
  const about = machine();
  const gateways = await startAll();
  const samples = Object.fromEntries(gateways.map(({ name }) => [name, {}]));
  const molly = gateways.find(({ name }) => name === 'Molly');
  for (const gateway of gateways) {
    await check(gateway, 'fast', false);
    await check(gateway, 'sse', true);
    await load(gateway, 'fast', 16, gateway.name === 'Portkey' && !quick ? 10 : 1); // warm code and connections
  }
  await check(molly, 't3', false).catch((error) => {
    console.error(`T3 is not measured: ${error.message}`);
    delete molly.routes.t3;
  });
  for (let round = 0; round < ROUNDS; ++round) {
    await measureRound(gateways, samples);
    process.stderr.write(`round ${round + 1} of ${ROUNDS}\n`);
  }
  const figures = { benchmark: 'gateway', quick, rounds: ROUNDS, seconds: SECONDS, machine: about, ...summarise(gateways, samples), soak: await soak(molly) };
  figures.goals = goals(figures);
  const names = gateways.map(({ name }) => name);
  write('gateway', { text: report(figures, names), figures, plot: plot(figures, names) });
  return figures;
}

try {
  const figures = await main();
  // CHECK=1 makes a missed goal an error, for machines that are quiet enough.
  if (process.env.CHECK === '1' && !figures.goals.every((one) => one.reached)) process.exitCode = 1;
} finally {
  await stopAll();
}
