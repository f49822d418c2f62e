// molly-engine does not start on a model file that is damaged or hostile, and says why.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { nano } from '../engine_process.mjs';
import { program, temporaryFolder } from '../harness.mjs';

let folder;
before(() => (folder = temporaryFolder('hostile')));
after(() => fs.rmSync(folder, { recursive: true, force: true }));

const serve = (model, ...args) =>
  spawnSync(`${program}-engine`, ['serve', '--model', model, '--listen', `unix:${path.join(folder, 'e.sock')}`, '--threads', '1', ...args], { encoding: 'utf8', timeout: 30_000 });

const changes = {
  'cut in the weights': (bytes) => bytes.subarray(0, bytes.length - 10_000),
  'cut in the header': (bytes) => bytes.subarray(0, 300),
  'empty': () => Buffer.alloc(0),
  'no GGUF': () => Buffer.from('#!/bin/sh\necho hello\n'.repeat(50)),
  'a tensor count out of this world': (bytes) => (bytes.writeBigUInt64LE(0x7fffffffffffffffn, 8), bytes),
  'a key count out of this world': (bytes) => (bytes.writeBigUInt64LE(0x7fffffffffffffffn, 16), bytes),
  'a length out of this world': (bytes) => (bytes.writeBigUInt64LE(0xffffffffffffff00n, 24), bytes),
  'another version': (bytes) => (bytes.writeUInt32LE(99, 4), bytes),
};

for (const [name, change] of Object.entries(changes)) {
  test(`a model file with this wrong is refused: ${name}`, () => {
    const file = path.join(folder, 'model.gguf');
    fs.writeFileSync(file, change(fs.readFileSync(nano)));
    const { status, signal, stderr } = serve(file);
    assert.equal(signal, null, `ended by ${signal}: ${stderr}`);
    assert.equal(status, 1, stderr);
    assert.match(stderr, /model\.gguf|GGUF|file/);
  });
}

test('a header with random bytes changed never ends the program by a signal', () => {
  const original = fs.readFileSync(nano);
  let state = 7;
  const random = (below) => (state = (state * 1664525 + 1013904223) % 4294967296) % below;
  for (let round = 0; round < 12; ++round) {
    const bytes = Buffer.from(original);
    for (let change = 0; change < 4; ++change) bytes[24 + random(3000)] = random(256);
    const file = path.join(folder, 'changed.gguf');
    fs.writeFileSync(file, bytes);
    // What still serves is stopped by the limit.
    const { signal, status, stderr } = spawnSync('timeout', ['-s', 'TERM', '3', `${program}-engine`, 'serve', '--model', file, '--listen', `unix:${path.join(folder, 'r.sock')}`, '--threads', '1'], { encoding: 'utf8' });
    assert.equal(signal, null);
    assert.ok([0, 1, 124].includes(status), `round ${round}: status ${status}\n${stderr}`);
  }
});

test('a pool that cannot be had is a clear error', () => {
  for (const pool of ['4KiB', '900TiB']) {
    const { status, signal, stderr } = serve(nano, '--pool', pool);
    assert.equal(signal, null, stderr);
    assert.notEqual(status, 0, `--pool ${pool}`);
    assert.match(stderr, /pool|memory|pages/, stderr);
  }
});
