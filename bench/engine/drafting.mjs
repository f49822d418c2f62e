// usage: node bench/engine/drafting.mjs FOLDER    with the files of `bench_models FOLDER drafting`
// Guesses of one engine for another with delay between them, and of a draft model inside one engine.
import path from 'node:path';
import { cpuTime, machine, median, quick, rounded, table, write } from '../report.mjs';
import { startDelay } from './delay_proxy.mjs';
import { EngineDrafter, RecordedDrafter, Relay } from './draft_relay.mjs';
import { call, startMolly } from './servers.mjs';

const folder = process.argv[2];
const ROUNDS = Number(process.env.ROUNDS ?? (quick ? 1 : 3));
const TOKENS = quick ? 32 : 48;
const DELAYS = [0, 1, 5, 20];
const DEPTH = 8;
const RECORDED_MS = 5; // of one guess of the recorded drafter
const file = (name) => path.resolve(folder, `${name}.gguf`);
const progress = (text) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

function prompt(seed) {
  let state = ((seed + 1) * 2654435761) % 4294967296;
  return Array.from({ length: 48 }, () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return 259 + Math.floor((state / 4294967296) * 31000);
  });
}
const body = (round) => ({ prompt: prompt(round), max_tokens: TOKENS, temperature: 0, ignore_eos: true });
const start = (name, core, args = []) => startMolly(file(name), { threads: 1, cores: core, adapters: 0, pool: '256MiB', args: ['--page-tokens', '16', ...args] });

async function gauge(server, name) {
  return Number(new RegExp(`^molly_engine_${name} ([0-9.e+-]+)$`, 'm').exec((await call(server, 'GET', '/metrics')).body)[1]);
}

let channels = 0;
async function ask(server, relay, round, task) {
  const cpuBefore = cpuTime([server.pid]);
  const answer = await relay.answer({ ...body(round), task_class: task }, `channel-${++channels}`);
  const { draft_n: drafted, draft_n_accepted: accepted } = answer.timings;
  return { ...answer, drafted, accepted, cpu: (cpuTime([server.pid]) - cpuBefore) / 1e6 / TOKENS, perToken: answer.timings.predicted_ms / (TOKENS - 1) };
}

function summary(plain, drafted) {
  const sum = (list, key) => list.reduce((total, one) => total + one[key], 0);
  return {
    plain_ms: rounded(median(plain.map((one) => one.perToken)), 2),
    drafted_ms: rounded(median(drafted.map((one) => one.perToken)), 2),
    speed: rounded(median(drafted.map((one, i) => plain[i].perToken / one.perToken)), 2),
    cpu_speed: rounded(median(drafted.map((one, i) => plain[i].cpu / one.cpu)), 2),
    drafted: sum(drafted, 'drafted'), accepted: sum(drafted, 'accepted'),
    same: drafted.every((one, i) => JSON.stringify(one.tokens) === JSON.stringify(plain[i].tokens)),
  };
}

/** `drafters`: by name, made anew for each delay. */
async function acrossDelay(target, delay, drafters) {
  const socket = `${target.socket}.delayed`;
  const close = await startDelay(socket, target.socket, delay);
  const relays = { plain: new Relay({ target: socket, drafter: null }) };
  for (const [name, drafter] of Object.entries(drafters)) relays[name] = new Relay({ target: socket, drafter });
  const samples = Object.fromEntries(Object.keys(relays).map((name) => [name, []]));
  try {
    for (let round = 0; round < ROUNDS; ++round) {
      for (const [name, relay] of Object.entries(relays)) samples[name].push(await ask(target, relay, round, `${name} ${delay}`));
    }
    const { plain, ...drafted } = samples;
    return Object.fromEntries(Object.entries(drafted).map(([name, list]) => [name, summary(plain, list)]));
  } finally {
    Object.values(relays).forEach((relay) => relay.close());
    close();
  }
}

async function record(target) {
  const answers = new Map();
  const relay = new Relay({ target: target.socket, drafter: null });
  for (let round = 0; round < ROUNDS; ++round) answers.set(JSON.stringify(prompt(round)), (await ask(target, relay, round, 'record')).tokens);
  relay.close();
  return answers;
}

/** The drafts of `--draft-model` and n-grams, by the request's own choice. */
async function inside(draftModel) {
  const server = await start('target', '0', ['--draft-model', file(draftModel)]);
  const samples = { off: [], model: [], ngram: [], auto: [] };
  const relays = Object.fromEntries(Object.keys(samples).map((drafting) => [drafting, new Relay({ target: server.socket, drafter: null, drafting })]));
  try {
    for (let round = 0; round < ROUNDS; ++round) {
      for (const [drafting, relay] of Object.entries(relays)) samples[drafting].push(await ask(server, relay, round, drafting));
    }
    const { off, ...drafted } = samples;
    return Object.fromEntries(Object.entries(drafted).map(([drafting, list]) => [drafting, summary(off, list)]));
  } finally {
    Object.values(relays).forEach((relay) => relay.close());
    await server.stop();
  }
}

const figures = { machine: machine(), tokens: TOKENS, depth: DEPTH, draft_ms: {}, recorded: {}, across: {}, inside: {} };
for (const draftModel of ['first-layers', 'target', 'other']) {
  figures.inside[draftModel] = await inside(draftModel);
  progress(`inside ${draftModel}: ${JSON.stringify(figures.inside[draftModel])}`);
}
const target = await start('target', '0');
const answers = await record(target);
for (const delay of DELAYS) {
  const recorded = (acceptance) => new RecordedDrafter({ answers, acceptance, milliseconds: RECORDED_MS, depth: DEPTH });
  figures.recorded[delay] = await acrossDelay(target, delay, { 1: recorded(1), 0.9: recorded(0.9), 0.7: recorded(0.7), 0: recorded(0) });
  progress(`recorded ${delay} ms: ${JSON.stringify(figures.recorded[delay])}`);
}
for (const name of ['first-layers', 'target', 'other']) {
  const drafter = await start(name, '1');
  for (const delay of DELAYS) {
    const engine = new EngineDrafter({ socket: drafter.socket, depth: DEPTH });
    Object.assign((figures.across[delay] ??= {}), await acrossDelay(target, delay, { [name]: engine }));
    progress(`across ${delay} ms: ${JSON.stringify(figures.across[delay][name])}`);
  }
  figures.draft_ms[name] = rounded(await gauge(drafter, 'step_milliseconds'), 2);
  await drafter.stop();
}
figures.step_ms = rounded(await gauge(target, 'step_milliseconds'), 2);
figures.row_ms = rounded(await gauge(target, 'row_milliseconds'), 2);
await target.stop();

const row = (label, one) => [label, one.plain_ms, one.drafted_ms, one.speed, one.cpu_speed, one.drafted ? rounded(one.accepted / one.drafted, 2) : null, one.drafted, one.same ? 'yes' : 'no'];
const header = ['case', 'ms/token without', 'with', 'speed', 'by CPU time', 'accepted', 'drafted', 'same tokens'];
const rows = (figure, label) => Object.entries(figure).flatMap(([outer, inner]) => Object.entries(inner).map(([name, one]) => row(label(outer, name), one)));
const acceptances = Object.keys(figures.recorded[0]);
write('drafting', {
  text: `# Drafting

A step of one token takes ${figures.step_ms} ms, one more row ${figures.row_ms} ms; a step of the drafters ${JSON.stringify(figures.draft_ms)} ms.

${table(header, rows(figures.inside, (model, source) => `inside, --draft-model ${model}, ${source}`))}

${table(header, rows(figures.recorded, (delay, acceptance) => `recorded, right ${acceptance}, ${delay} ms each way`))}

${table(header, rows(figures.across, (delay, name) => `from an engine with ${name}, ${delay} ms each way`))}
`,
  figures,
  plot: `set xlabel "one-way delay, ms"\nset ylabel "speed, times that without drafts"\nset yrange [0:*]\n${acceptances.map((name, i) => `$a${i} << E\n${DELAYS.map((delay) => `${delay} ${figures.recorded[delay][name].speed}`).join('\n')}\nE`).join('\n')}\nplot ${acceptances.map((name, i) => `$a${i} with linespoints lw 2 title "right ${name}"`).join(', ')}`,
});
