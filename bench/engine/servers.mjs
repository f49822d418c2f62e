// The two engines under one interface, and requests to them over their unix sockets.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuTime } from '../report.mjs';

const engineProgram = fileURLToPath(new URL('../../build/release/bin/molly-engine', import.meta.url));
export const adapterName = (number) => `a${String(number).padStart(2, '0')}`;

/** One JSON request; resolves to { status, body }. */
export function call(server, method, route, body = null) {
  return new Promise((resolve, reject) => {
    const text = body === null ? '' : JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const request = http.request({ agent: false, socketPath: server.socket, method, path: route, headers }, (response) => {
      let answer = '';
      response.on('data', (bytes) => (answer += bytes));
      response.on('end', () => resolve({ status: response.statusCode, body: answer }));
    });
    request.on('error', reject);
    request.end(text);
  });
}

/** A streamed completion; resolves to { first, end } in milliseconds from now, and the usage. */
export function complete(server, { prompt, tokens, adapter = null }) {
  const began = performance.now();
  const body = {
    prompt, max_tokens: tokens, temperature: 0, ignore_eos: true, stream: true, stream_options: { include_usage: true },
    ...server.choose(adapter),
  };
  return new Promise((resolve, reject) => {
    const request = http.request({ agent: false, socketPath: server.socket, method: 'POST', path: '/v1/completions', headers: { 'content-type': 'application/json' } }, (response) => {
      let first = null;
      let text = '';
      response.on('data', (bytes) => {
        first ??= performance.now() - began;
        text += bytes;
      });
      response.on('end', () => {
        const events = text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
        const usage = events.findLast((event) => event.usage)?.usage;
        if (response.statusCode !== 200 || !usage) return reject(new Error(`${server.name}: status ${response.statusCode}: ${text.slice(0, 400)}`));
        if (usage.completion_tokens !== tokens) return reject(new Error(`${server.name}: ${usage.completion_tokens} tokens instead of ${tokens}`));
        resolve({ first, end: performance.now() - began, usage });
      });
      response.on('error', reject);
    });
    request.on('error', (error) => reject(new Error(`${server.name}: ${error.message}\n${server.tail()}`)));
    request.end(JSON.stringify(body));
  });
}

/** All requests at once; { seconds, cpu (seconds of the server), tokens, firsts, ends, usages }. */
export async function load(server, requests) {
  const cpuBefore = cpuTime([server.pid]);
  const began = performance.now();
  const answers = await Promise.all(requests.map((one) => complete(server, one)));
  return {
    seconds: (performance.now() - began) / 1000, cpu: (cpuTime([server.pid]) - cpuBefore) / 1e9,
    tokens: requests.reduce((sum, one) => sum + one.tokens, 0),
    firsts: answers.map((one) => one.first), ends: answers.map((one) => one.end), usages: answers.map((one) => one.usage),
  };
}

async function start(server, command, { cores, environment = {} }) {
  const argv = cores ? ['taskset', '-c', cores, ...command] : command;
  const logFile = path.join(server.folder, 'log');
  const log = fs.openSync(logFile, 'w');
  const child = spawn(argv[0], argv.slice(1), { stdio: ['ignore', log, log], env: { ...process.env, ...environment } });
  server.pid = child.pid; // taskset becomes the server
  server.tail = () => fs.readFileSync(logFile, 'utf8').slice(-2000);
  const ended = new Promise((resolve) => child.on('exit', resolve));
  server.stop = async () => {
    child.kill('SIGKILL');
    await ended;
    fs.rmSync(server.folder, { recursive: true, force: true });
  };
  const deadline = performance.now() + 120_000;
  while (await call(server, 'GET', '/health').then((answer) => answer.status !== 200, () => true)) {
    if (child.exitCode !== null || performance.now() > deadline) {
      throw new Error(`${server.name} did not start:\n${server.tail()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return server;
}

function make(name) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-engine-'));
  return { name, folder, socket: path.join(folder, 's.sock') };
}

export async function startMolly(model, { threads, cores, adapters, folder, pool = '1GiB', parallel = 16, args = [], environment = {} }) {
  const server = make('molly-engine');
  const command = [engineProgram, 'serve', '--model', model, '--listen', `unix:${server.socket}`, '--threads', String(threads), '--pool', pool, '--parallel', String(parallel), '--context', '2304', ...args];
  server.choose = (adapter) => (adapter === null ? {} : { adapter: adapterName(adapter) });
  await start(server, command, { cores, environment });
  for (let number = 0; number < adapters; ++number) {
    const added = await call(server, 'POST', '/adapters', { name: adapterName(number), path: path.resolve(folder, `${adapterName(number)}.gguf`) });
    if (added.status !== 200) throw new Error(`adapter ${number}: ${added.body}`);
  }
  return server;
}

export async function startLlama(model, { threads, cores, adapters, folder, parallel = 8, environment = {} }) {
  const server = make('llama-server');
  const command = ['llama-server', '--model', model, '--host', server.socket, '--threads', String(threads), '--parallel', String(parallel), '--ctx-size', String(parallel * 2304), '--cache-ram', '0', '--no-ui', '--offline', '--lora-init-without-apply'];
  for (let number = 0; number < adapters; ++number) command.push('--lora', path.resolve(folder, `${adapterName(number)}.gguf`));
  server.choose = (adapter) => ({ cache_prompt: false, lora: adapter === null ? [{ id: 0, scale: 0 }] : [{ id: adapter, scale: 1 }] });
  return start(server, command, { cores, environment });
}

/** Proportional set size, MiB. */
export function pss(pid) {
  return Number(/^Pss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]) / 1024;
}
