// molly-engine as a program of its own, over its unix socket.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { program, temporaryFolder, top, until, within } from './harness.mjs';

export const nano = path.join(top, 'models/nano.gguf');
const KEY = 'a-key-for-this-test';

export class EngineProcess {
  /** pool: null leaves it to the plan. */
  static async start({ model = nano, pool = '16MiB', args = [] } = {}) {
    const engine = new EngineProcess();
    engine.folder = temporaryFolder('engine');
    engine.socketPath = path.join(engine.folder, 'e.sock');
    const keyFile = path.join(engine.folder, 'key');
    fs.writeFileSync(keyFile, `${KEY}\n`, { mode: 0o600 });
    engine.log = '';
    engine.child = spawn(`${program}-engine`, ['serve', '--model', model, '--listen', `unix:${engine.socketPath}`, '--key-file', keyFile, '--threads', '1', ...(pool === null ? [] : ['--pool', pool]), ...args]);
    for (const stream of [engine.child.stdout, engine.child.stderr]) stream.on('data', (bytes) => (engine.log += bytes));
    engine.exited = once(engine.child, 'exit').then(([code, signal]) => (engine.exit = { code, signal }));
    await until(() => engine.exit || engine.call('GET', '/health').then((answer) => answer.status === 200, () => false), 'the engine to be ready', 20_000);
    return engine;
  }

  call(method, route, body, headers = {}) {
    return new Promise((resolve, reject) => {
      const request = this.request(method, route, headers, (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (piece) => (text += piece));
        answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text, json: () => JSON.parse(text) }));
        answer.on('error', reject);
      });
      request.on('error', reject);
      request.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** The bare request, for those who read slowly, leave early or send nonsense. */
  request(method, route, headers, onAnswer) {
    return http.request({ socketPath: this.socketPath, method, path: route, timeout: 60_000, headers: { authorization: `Bearer ${KEY}`, ...headers } }, onAnswer);
  }

  chat(more) {
    return this.call('POST', '/v1/chat/completions', { messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 12, temperature: 0, ...more });
  }

  async text(more) {
    const answer = await this.chat(more);
    if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
    return answer.json().choices[0].message.content;
  }

  async metric(name) {
    return Number(new RegExp(`^molly_engine_${name} (\\d+)$`, 'm').exec((await this.call('GET', '/metrics')).text)[1]);
  }

  openDescriptors() {
    return fs.readdirSync(`/proc/${this.child.pid}/fd`).length;
  }

  addAdapter(name, file) {
    return this.call('POST', '/adapters', { name, path: file });
  }

  async adapters() {
    return (await this.call('GET', '/adapters')).json().adapters;
  }

  /** Resolves to the exit code. A second signal, after `patience` milliseconds, ends what still runs. */
  async stop({ patience = 100 } = {}) {
    this.child.kill('SIGTERM');
    const second = setTimeout(() => this.child.kill('SIGTERM'), patience);
    await within(10_000, this.exited, 'the exit of the engine');
    clearTimeout(second);
    fs.rmSync(this.folder, { recursive: true, force: true });
    return this.exit.code;
  }
}
