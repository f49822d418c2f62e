// usage: node bench/engine/drafting.mjs FOLDER    with the files of `bench_models FOLDER drafting`
// Guesses of one engine for another with delay between them, and of a draft model inside one engine.
import path from 'node:path';
import { machine, median, quick, rounded, table, write } from '../report.mjs';
import { startDelay } from './delay_proxy.mjs';
import { Relay } from './draft_relay.mjs';
import { call, startMolly } from './servers.mjs';

const folder = process.argv[2];
const ROUNDS = quick ? 2 : 6;
const TOKENS = quick ? 48 : 128;
const DELAYS = [0, 1, 5, 20];
const DEPTH = 8;
const file = (name) => path.resolve(folder, `${name}.gguf`);
const progress = (text) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

function prompt(seed) {
  let state = ((seed + 1) * 2654435761) % 4294967296;
  return Array.from({ length: 48 }, () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return 259 + Math.floor((state / 4294967296) * 31000);
  });
}
const body = (round) => ({ prompt: prompt(round), max_tokens: TOKENS, temperature: 0, ignore_eos: true, task_class: 'bench' });
const start = (name, core, args = []) => startMolly(file(name), { threads: 1, cores: core, adapters: 0, pool: '256MiB', args: ['--page-tokens', '16', ...args] });

async function gauge(server, name) {
  return Number(new RegExp(`^molly_engine_${name} ([0-9.e+-]+)$`, 'm').exec((await call(server, 'GET', '/metrics')).body)[1]);
}

let channels = 0;
async function ask(relay, round) {
  const answer = await relay.answer(body(round), `channel-${++channels}`);
  const { draft_n: drafted, draft_n_accepted: accepted } = answer.timings;
  return { ...answer, drafted, accepted, perToken: answer.timings.predicted_ms / (TOKENS - 1) };
}

function summary(plain, drafted) {
  const sum = (list, key) => list.reduce((total, one) => total + one[key], 0);
  return {
    plain_ms: rounded(median(plain.map((one) => one.perToken)), 2),
    drafted_ms: rounded(median(drafted.map((one) => one.perToken)), 2),
    speed: rounded(median(drafted.map((one, i) => plain[i].perToken / one.perToken)), 2),
    drafted: sum(drafted, 'drafted'), accepted: sum(drafted, 'accepted'),
    same: drafted.every((one, i) => JSON.stringify(one.tokens) === JSON.stringify(plain[i].tokens)),
  };
}

async function acrossDelay(target, drafter, delay) {
  const socket = `${target.socket}.delayed`;
  const close = await startDelay(socket, target.socket, delay);
  const relays = { plain: new Relay({ target: socket, drafter: null }), drafted: new Relay({ target: socket, drafter: drafter.socket, depth: DEPTH }) };
  const samples = { plain: [], drafted: [] };
  try {
    for (let round = 0; round < ROUNDS; ++round) {
      for (const [name, relay] of Object.entries(relays)) samples[name].push(await ask(relay, round));
    }
    return summary(samples.plain, samples.drafted);
  } finally {
    Object.values(relays).forEach((relay) => relay.close());
    close();
  }
}

/** The drafts of `--draft-model` and n-grams, by the request's own choice. */
async function inside(draftModel) {
  const server = await start('target', '0', ['--draft-model', file(draftModel)]);
  const samples = { off: [], model: [], ngram: [], auto: [] };
  const relays = Object.fromEntries(Object.keys(samples).map((drafting) => [drafting, new Relay({ target: server.socket, drafter: null, drafting })]));
  try {
    for (let round = 0; round < ROUNDS; ++round) {
      for (const [drafting, relay] of Object.entries(relays)) samples[drafting].push(await ask(relay, round));
    }
    const { off, ...drafted } = samples;
    return Object.fromEntries(Object.entries(drafted).map(([drafting, list]) => [drafting, summary(off, list)]));
  } finally {
    Object.values(relays).forEach((relay) => relay.close());
    await server.stop();
  }
}

const figures = { machine: machine(), tokens: TOKENS, depth: DEPTH, across: {}, inside: {} };
for (const draftModel of ['first-layers', 'target', 'other']) {
  figures.inside[draftModel] = await inside(draftModel);
  progress(`inside ${draftModel}: ${JSON.stringify(figures.inside[draftModel])}`);
}
const target = await start('target', '0');
for (const name of ['first-layers', 'target', 'other']) {
  const drafter = await start(name, '1');
  figures.across[name] = { delays: {} };
  for (const delay of DELAYS) {
    figures.across[name].delays[delay] = await acrossDelay(target, drafter, delay);
    progress(`across ${name} ${delay} ms: ${JSON.stringify(figures.across[name].delays[delay])}`);
  }
  figures.across[name].draft_ms = rounded(await gauge(drafter, 'step_milliseconds'), 2);
  await drafter.stop();
}
figures.step_ms = rounded(await gauge(target, 'step_milliseconds'), 2);
figures.row_ms = rounded(await gauge(target, 'row_milliseconds'), 2);
await target.stop();

const row = (label, one) => [label, one.plain_ms, one.drafted_ms, one.speed, one.drafted ? rounded(one.accepted / one.drafted, 2) : null, one.drafted, one.same ? 'yes' : 'no'];
const header = ['case', 'ms/token without', 'with', 'speed', 'accepted', 'drafted', 'same tokens'];
write('drafting', {
  text: `# Drafting

${table(header, Object.entries(figures.inside).flatMap(([model, sources]) => Object.entries(sources).map(([source, one]) => row(`inside, ${model}, ${source}`, one))))}

${table(header, Object.entries(figures.across).flatMap(([model, { delays }]) => Object.entries(delays).map(([delay, one]) => row(`from ${model}, ${delay} ms each way`, one))))}

A step of one token ${figures.step_ms} ms, one more row ${figures.row_ms} ms.
`,
  figures,
  plot: `set xlabel "one-way delay, ms"\nset ylabel "speed, times that without drafts"\nset yrange [0:*]\n${Object.entries(figures.across).map(([name, { delays }]) => `$${name.replace('-', '_')} << E\n${Object.entries(delays).map(([delay, one]) => `${delay} ${one.speed}`).join('\n')}\nE`).join('\n')}\nplot ${Object.keys(figures.across).map((name) => `$${name.replace('-', '_')} with linespoints lw 2 title "drafts from ${name}"`).join(', ')}`,
});
