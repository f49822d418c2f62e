// Starts the upstreams (second core) and the gateways under test (first core).
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { descendants, Molly, sleep, target, within } from '../../tests/e2e/harness.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const GATEWAY_CORE = '0';
export const LOAD_CORE = '1';
const cleanups = [];

export async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function start(core, command, args, env = {}) {
  const log = fs.openSync(path.join(folder, `${path.basename(args.at(-1))}.log`), 'a');
  const child = spawn('taskset', ['-c', core, command, ...args], { env: { ...process.env, ...env }, stdio: ['ignore', log, log] });
  cleanups.push(() => child.kill('SIGKILL'));
  return child;
}

async function listening(port) {
  const tryOnce = () => new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)));
    socket.on('error', () => resolve(false));
  });
  for (let i = 0; i < 1000; ++i) {
    if (await tryOnce()) return;
    await sleep(20);
  }
  throw new Error(`nothing listens on port ${port}`);
}

const folder = fs.mkdtempSync('/tmp/molly-bench-');
cleanups.push(() => fs.rmSync(folder, { recursive: true, force: true }));

const ANSWER = JSON.stringify({
  id: 'chatcmpl-bench', object: 'chat.completion', created: 1700000000, model: 'bench',
  choices: [{ index: 0, message: { role: 'assistant', content: 'tok '.repeat(32) }, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 12, completion_tokens: 32, total_tokens: 44 },
});

function nginxConfig(name, http) {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((one) => `${one}_temp_path ${folder}/${name}_${one};`).join(' ');
  const file = path.join(folder, name);
  fs.writeFileSync(file, `worker_processes 1; daemon off; master_process off; pid ${file}.pid; error_log ${file}.err warn;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; keepalive_timeout 65; ${temporary}
${http}
}
`);
  return file;
}

async function startUpstreams() {
  const fast = await freePort();
  start(LOAD_CORE, 'nginx', ['-c', nginxConfig('fast', `default_type application/json; server { listen 127.0.0.1:${fast}; location / { return 200 '${ANSWER}'; } }`)]);
  const sse = await freePort();
  start(LOAD_CORE, 'node', [path.join(here, 'sse_upstream.mjs'), String(sse)]);
  await Promise.all([fast, sse].map(listening));
  return { fast, sse };
}

async function startNginx(upstreams) {
  const ports = { fast: await freePort(), sse: await freePort() };
  const server = (kind) => `upstream ${kind} { server 127.0.0.1:${upstreams[kind]}; keepalive 256; keepalive_requests 100000000; }
server { listen 127.0.0.1:${ports[kind]}; location / { proxy_pass http://${kind}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }`;
  const child = start(GATEWAY_CORE, 'nginx', ['-c', nginxConfig('proxy', `${server('fast')}\n${server('sse')}`)]);
  await Promise.all(Object.values(ports).map(listening));
  const route = (kind) => ({ url: `http://127.0.0.1:${ports[kind]}`, model: 'bench', headers: {} });
  return { name: 'nginx', pids: () => [child.pid], routes: { fast: route('fast'), sse: route('sse') } };
}

async function startPortkey(upstreams) {
  const program = path.join(here, 'portkey/node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!process.env.BENCH_ISOLATED || !fs.existsSync(program)) return null;
  const port = await freePort();
  const child = start(GATEWAY_CORE, 'node', [program, `--port=${port}`, '--headless'], { NODE_ENV: 'production' });
  await listening(port);
  const route = (kind) => ({
    url: `http://127.0.0.1:${port}`, model: 'bench',
    headers: { Authorization: 'Bearer sk-bench', 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `http://127.0.0.1:${upstreams[kind]}/v1` },
  });
  return { name: 'Portkey', pids: () => [child.pid, ...descendants(child.pid)], routes: { fast: route('fast'), sse: route('sse') } };
}

async function startMolly(upstreams) {
  const url = (kind) => `http://127.0.0.1:${upstreams[kind]}/v1`;
  const fields = { model: '"bench"', concurrency: 256 };
  const molly = await Molly.start({
    prefix: ['taskset', '-c', GATEWAY_CORE],
    config: `
[server]
threads = 1
${target('fast', url('fast'), fields)}
${target('sse', url('sse'), fields)}
${target('far', url('fast'), { ...fields, tier: '"T3"', zone: '"eu"', provider: '"bench"' })}
[[grant]]
tier = "T3"
provider = "bench"
zones = ["eu"]
members = ["bench"]
max_confidentiality = "public"
`,
  });
  cleanups.push(() => molly.remove());
  const { key } = await molly.runJson(['keys', 'create', 'bench', '--member', 'bench', '--max-tier', 'T3']);
  const route = (model, headers = {}) => ({ url: molly.url, model, headers: { Authorization: `Bearer ${key}`, ...headers } });
  return {
    name: 'Molly', molly,
    // The program's own processes: a model server that it may have started is no part of the gateway.
    pids: () => [molly.pid, ...descendants(molly.pid)].filter((pid) => !molly.modelServers().includes(pid)),
    routes: { fast: route('fast'), sse: route('sse'), t3: route('far', { 'x-molly-confidentiality': 'public' }) },
  };
}

/** Everything that takes part, ready to be measured. */
export async function startAll() {
  const upstreams = await startUpstreams();
  const direct = (kind) => ({ url: `http://127.0.0.1:${upstreams[kind]}`, model: 'bench', headers: {} });
  const gateways = [
    { name: 'direct', pids: () => [], routes: { fast: direct('fast'), sse: direct('sse') } },
    await startNginx(upstreams), await startMolly(upstreams), await startPortkey(upstreams),
  ].filter(Boolean);
  return gateways;
}

export async function stopAll() {
  for (const cleanup of cleanups.reverse()) await within(20_000, Promise.resolve(cleanup()), 'stopping').catch(() => {});
}
