// Every command that the README and the guides in docs/ show does what they say. What stands there as an example
// (a port, a file, a trace, a key's pin) is replaced by what this run has; nothing else is changed.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { writeAdapter } from '../gguf.mjs';
import { Molly, program, temporaryFolder, top, until } from '../harness.mjs';
import { closedPort } from '../upstream.mjs';

const README = fs.readFileSync(path.join(top, 'README.md'), 'utf8');
const guides = Object.fromEntries(
  fs.readdirSync(path.join(top, 'docs')).filter((name) => name.endsWith('.md')).map((name) => [name, fs.readFileSync(path.join(top, 'docs', name), 'utf8')]));

const engineAddress = '127.0.0.1:8080';

let molly;
let home;
let trace;
let enginePort;
const engines = [];

before(async () => {
  home = temporaryFolder('molly-readme');
  for (const folder of ['models', 'data']) fs.mkdirSync(path.join(home, folder));
  const nano = path.join(top, 'models/nano.gguf');
  for (const file of ['models/qwen3-8b-q4_k_m.gguf', 'FILE.gguf']) fs.copyFileSync(nano, path.join(home, file));
  writeAdapter(path.join(home, 'poet.gguf'), nano);
  enginePort = await closedPort();
  fs.symlinkSync(path.join(top, 'tests/e2e/node_modules'), path.join(home, 'node_modules'));
  // ./molly is the script that enters the root; these tests are inside it already.
  fs.symlinkSync(program, path.join(home, 'molly'));
  fs.symlinkSync(`${program}-engine`, path.join(home, 'molly-engine'));
  molly = await Molly.start({ env: environment() });
  fs.symlinkSync(molly.data, path.join(home, 'data', 'molly'));
  const answer = await molly.post('/v1/chat/completions', { model: 'auto', max_tokens: 2, messages: [{ role: 'user', content: 'Hello' }] });
  trace = answer.headers.get('x-molly-trace');
});
after(async () => {
  engines.forEach((engine) => engine.kill('SIGKILL'));
  await molly?.remove();
  fs.rmSync(home, { recursive: true, force: true });
});

function environment() {
  return { HOME: home, XDG_DATA_HOME: path.join(home, 'data'), PATH: `${home}:${process.env.PATH}`, SERVER_KEY: 'not-a-real-key' };
}

function blocks(text) {
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(([, language, body]) => ({ language, body }));
}

/** The commands of the blocks without a language: comments and continuation lines resolved. */
function commands(text) {
  return blocks(text).filter(({ language }) => language === '').flatMap(({ body }) =>
    body.replaceAll('\\\n', ' ').split('\n').map((line) => line.replace(/\s+# .*$/, '').trim()).filter((line) => /^(\.\/molly|molly|molly-engine|make|curl) /.test(line)));
}

function asHere(command) {
  return command
    .replaceAll('http://127.0.0.1:7411', molly.url)
    .replaceAll(engineAddress, `127.0.0.1:${enginePort}`)
    .replace(/tr_01J\.\.\./, trace)
    .replace(' [--name NAME] [--projector MMPROJ.gguf]', ' --name NAME');
}

function shell(command, input = '') {
  return new Promise((resolve) => {
    const child = execFile('bash', ['-c', command], { cwd: home, env: { ...molly.env, ...environment() }, timeout: 90_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr }));
    child.stdin.end(input);
  });
}

// What a command shows beside exit code 0.
const expectations = [
  [/^curl.*chat\/completions/, ({ stdout }) => assert.ok(JSON.parse(stdout).choices[0].message.content.length > 0)],
  [/^\.\/molly ask/, ({ stdout }) => assert.ok(stdout.trim().length > 0)],
  [/^\.\/molly status/, ({ stdout }) => assert.match(stdout, /nano.*T0/)],
  [/molly explain/, ({ stdout }) => assert.ok(stdout.includes(trace) && stdout.includes('nano'))],
  [/^curl.*8080\/(?!metrics)/, ({ stdout }) => assert.ok(!('error' in JSON.parse(stdout)), stdout)],
  [/^curl.*8080\/metrics/, ({ stdout }) => assert.match(stdout, /^molly_engine_pages \d+$/m)],
  [/^curl.*8080.*"confidence":true/, ({ stdout }) => assert.equal(typeof JSON.parse(stdout).choices[0].confidence.mean, 'number')],
  [/^molly(-engine)? plan(?!.*--json)/, ({ stdout }) => assert.match(stdout, /this device: \d+ cores/)],
  [/^molly-engine plan.*--json/, ({ stdout }) => assert.ok(JSON.parse(stdout).recommended)],
  [/molly keys create/, ({ stdout }) => assert.match(stdout, /molly_[0-9a-zA-Z_-]{40,}/)],
  [/molly models list/, ({ stdout }) => assert.match(stdout, /nano/)],
  [/molly audit verify/, ({ stdout }) => assert.match(stdout, /\d/)],
  [/molly audit show/, ({ stdout }) => stdout.trim().split('\n').forEach((line) => JSON.parse(line))],
];

const makefile = fs.readFileSync(path.join(top, 'Makefile'), 'utf8');

// This very test is part of `make test`, so of these it can only see that they exist.
function isTarget(command) {
  const [, target] = command.split(' ');
  assert.match(makefile, new RegExp(`^${target}:.*## `, 'm'));
}

/** A server goes on running: the commands after it ask it. */
async function startsServing(command) {
  const [name, ...args] = asHere(command).split(' ');
  const engine = spawn(path.join(home, name), args, { cwd: home, stdio: 'ignore' });
  engines.push(engine);
  await until(() => fetch(`http://127.0.0.1:${enginePort}/health`).then((answer) => answer.ok, () => false), `${command} to be ready`, 20_000);
}

async function runs(command) {
  if (command.startsWith('molly-engine serve ')) return startsServing(command);
  if (command.startsWith('make ')) return isTarget(command);
  const result = await shell(asHere(command), /chat/.test(command) ? 'Say hello.\n' : '');
  assert.equal(result.code, 0, `${asHere(command)}\n${result.stdout}${result.stderr}`);
  for (const [pattern, expected] of expectations) if (pattern.test(command)) expected(result);
}

test('every command of the README runs', { timeout: 300_000 }, async (context) => {
  const all = commands(README);
  assert.ok(all.length >= 10, `found ${all}`);
  for (const command of all) await context.test(command, () => runs(command));
});

test('every command of the guides runs', { timeout: 300_000 }, async (context) => {
  const all = Object.values(guides).flatMap(commands);
  assert.ok(all.length >= 12, `found ${all}`);
  for (const command of all) await context.test(command, () => runs(command));
});

const usableProcessor = () => /^Cpus_allowed_list:\s*(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1];

test('every configuration in the guides is one that Molly takes', { timeout: 60_000 }, async (context) => {
  const remote = blocks(guides['add-a-remote-target.md']).find(({ language }) => language === 'toml').body;
  let seen = 0;
  for (const [name, text] of Object.entries(guides)) {
    for (const { body } of blocks(text).filter(({ language }) => language === 'toml')) {
      seen += 1;
      await context.test(`${name}, block ${seen}`, async () => {
        const file = path.join(home, `guide-${seen}.toml`);
        const whole = body.includes('target = "server"') ? `${remote}\n${body}` : body;
        fs.writeFileSync(file, whole.replace('"0,2-3"', `"${usableProcessor()}"`).replace('sha256//BASE64=', `sha256//${Buffer.alloc(32, 7).toString('base64')}`));
        const checked = await shell(`molly policy check --config ${file}`);
        assert.equal(checked.code, 0, checked.stdout + checked.stderr);
      });
    }
  }
  assert.ok(seen >= 3);
});

test('the program that the guide shows runs', { timeout: 60_000 }, async () => {
  const { body } = blocks(guides['connect-an-sdk.md']).find(({ language }) => language === 'js');
  const file = path.join(home, 'guide.mjs');
  fs.writeFileSync(file, body.replaceAll('http://127.0.0.1:7411', molly.url));
  const ran = await shell(`node ${file}`);
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(ran.stdout.length > 0);
});
