// Starts the real program the way a person would and stops it again. Every wait has a deadline.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

// The benchmarks use this file too and have no client package.
const OpenAI = await import('openai').then((module) => module.default, () => null);

export const top = fileURLToPath(new URL('../../', import.meta.url));
export const program = process.env.MOLLY_PROGRAM ?? path.join(top, 'build/release/bin/molly');

const START_DEADLINE = 20_000;
const STOP_DEADLINE = 15_000;
const LOG_LIMIT = 256 * 1024;

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Rejects with a sentence when `promise` has not settled after so many milliseconds. */
export async function within(milliseconds, promise, what = 'this') {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks `condition` until it gives something truthy, which is returned. */
export async function until(condition, what, milliseconds = 10_000) {
  const deadline = performance.now() + milliseconds;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`waited ${milliseconds} ms in vain: ${what}`);
    await sleep(10);
  }
}

export function temporaryFolder(name = 'molly') {
  return fs.mkdtempSync(path.join(os.tmpdir(), `${name}-`));
}

/** The running program, its folder and its interfaces. */
export class Molly {
  /**
   * Starts `molly serve` and waits until it is ready.
   * config: text of molly.toml ('' starts without a file); listen: extra --listen addresses;
   * folder: a data folder to use again; env: more environment variables.
   */
  static async start({ config = '', args = [], env = {}, listen = '127.0.0.1:0', folder = null, prefix = [] } = {}) {
    const molly = new Molly();
    molly.folder = folder ?? temporaryFolder();
    molly.data = path.join(molly.folder, 'data');
    molly.configFile = path.join(molly.folder, 'molly.toml');
    molly.env = { ...process.env, XDG_CONFIG_HOME: path.join(molly.folder, 'config'), MOLLY_TEST_PLAIN_LOOPBACK_T3: '1', ...env };
    const command = [...prefix, program, 'serve', '--data', molly.data, '--listen', listen, ...args];
    if (config) {
      fs.writeFileSync(molly.configFile, config);
      command.push('--config', molly.configFile);
    }
    molly.output = '';
    molly.child = spawn(command[0], command.slice(1), { env: molly.env, stdio: ['ignore', 'pipe', 'pipe'] });
    molly.exited = once(molly.child, 'exit').then(([code, signal]) => (molly.exit = { code, signal }));
    for (const stream of [molly.child.stdout, molly.child.stderr]) {
      stream.on('data', (bytes) => (molly.output = (molly.output + bytes).slice(-LOG_LIMIT)));
    }
    try {
      await molly.#waitUntilReady();
    } catch (error) {
      await molly.stop();
      throw new Error(`${error.message}\n--- ${command.join(' ')}\n${molly.log()}`);
    }
    return molly;
  }

  async #waitUntilReady() {
    const file = path.join(this.data, 'run', 'address.json');
    this.address = await until(() => {
      if (this.exit) throw new Error(`molly ended with ${JSON.stringify(this.exit)} before it was ready`);
      try {
        const address = JSON.parse(fs.readFileSync(file, 'utf8'));
        return address.pid && this.#owns(address.pid) ? address : null;
      } catch {
        return null;
      }
    }, `${file} to appear`, START_DEADLINE);
    this.url = this.address.http;
    await until(async () => {
      if (this.exit) throw new Error(`molly ended with ${JSON.stringify(this.exit)} before it was ready`);
      return fetch(`${this.url}/ready`).then((answer) => answer.ok, () => false);
    }, '/ready to answer 200', START_DEADLINE);
  }

  // The data folder may hold the address of an earlier run.
  #owns(pid) {
    return pid === this.child.pid || descendants(this.child.pid).includes(pid);
  }

  get pid() {
    return this.child.pid;
  }

  log() {
    return this.output;
  }

  /** The official client against this server. */
  client(options = {}) {
    return new OpenAI({ baseURL: `${this.url}/v1`, apiKey: 'unused', maxRetries: 0, timeout: 20_000, ...options });
  }

  fetch(route, options = {}) {
    return fetch(`${this.url}${route}`, { signal: AbortSignal.timeout(20_000), ...options });
  }

  post(route, body, headers = {}) {
    return this.fetch(route, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  /** Runs `molly ARGS --data ...` and returns { code, stdout, stderr }. */
  run(args, { input = null, timeout = 20_000 } = {}) {
    return new Promise((resolve) => {
      const child = execFile(program, [...args, '--data', this.data], { env: this.env, timeout }, (error, stdout, stderr) =>
        resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr }));
      child.stdin.on('error', () => {});
      child.stdin.end(input ?? '');
    });
  }

  /** Runs a command with --json and parses its output; fails when it does not exit with 0. */
  async runJson(args) {
    const result = await this.run([...args, '--json']);
    if (result.code !== 0) throw new Error(`molly ${args.join(' ')} exited with ${result.code}: ${result.stderr}`);
    return JSON.parse(result.stdout);
  }

  writeConfig(text) {
    // Written aside and moved into place, as careful editors do.
    fs.writeFileSync(`${this.configFile}.new`, text);
    fs.renameSync(`${this.configFile}.new`, this.configFile);
  }

  /** Process ids of the control plane and of the model servers. */
  processes() {
    return descendants(this.child.pid).map((pid) => ({ pid, command: commandLine(pid) }));
  }

  controlPlane() {
    return this.processes().find(({ command }) => command.includes('control-plane'))?.pid ?? null;
  }

  modelServers() {
    return this.processes().filter(({ command }) => /llama-server|molly-engine/.test(command[0] ?? '')).map(({ pid }) => pid);
  }

  /** SIGTERM, and SIGKILL after the deadline. Returns { code, signal }. */
  async stop(deadline = STOP_DEADLINE) {
    if (!this.exit) this.child.kill('SIGTERM');
    try {
      await within(deadline, this.exited, 'molly\'s exit');
    } catch {
      this.overdue = true;
      this.child.kill('SIGKILL');
      await this.exited;
    }
    return this.exit;
  }

  async remove() {
    await this.stop();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

export function descendants(pid) {
  const found = [];
  for (const child of childrenOf(pid)) found.push(child, ...descendants(child));
  return found;
}

function childrenOf(pid) {
  const children = [];
  try {
    for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
      const text = fs.readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8');
      children.push(...text.split(' ').filter(Boolean).map(Number));
    }
  } catch {
    // it has just ended
  }
  return children;
}

function commandLine(pid) {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
  } catch {
    return [];
  }
}

export function alive(pid) {
  try {
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** A test with a deadline; on failure the program's log is shown. */
export function scenario(name, { molly = null, timeout = 30_000, skip = false } = {}, body) {
  test(name, { timeout, skip }, async (context) => {
    const before = molly?.()?.output.length ?? 0;
    try {
      await body(context);
    } catch (error) {
      const log = molly?.()?.output.slice(before).trim();
      if (log) context.diagnostic(`log of molly:\n${log.slice(-4000)}`);
      throw error;
    }
  });
}

/** TOML for a scripted upstream as a target of the LAN tier. `fields` are further lines, as an object of TOML values. */
export function target(name, url, fields = {}) {
  const lines = Object.entries({
    name: `"${name}"`, driver: '"openai"', tier: '"T1"', zone: '"lan"', url: `"${url}"`, model: '"scripted"',
    connect_seconds: 2, first_byte_seconds: 5, idle_seconds: 5, ...fields,
  }).map(([key, value]) => `${key} = ${value}`);
  return `[[target]]\n${lines.join('\n')}\n`;
}

/** The answer's text, gathered from a stream of the official client. */
export async function gather(stream) {
  const chunks = [];
  for await (const one of stream) chunks.push(one);
  const text = chunks.flatMap((one) => one.choices).filter((one) => one.index === 0).map((one) => one.delta?.content ?? '').join('');
  return { chunks, text };
}

/** Awaits a rejection and returns its error. */
export async function failureOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('this should have failed');
}
