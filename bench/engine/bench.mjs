// molly-engine against llama-server: throughput of mixed adapters, time to first token, prefixes, adapters, memory.
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { machine, median, percentile, quick, rounded, table, write } from '../report.mjs';
import { adapterName, call, complete, load, pss, startLlama, startMolly } from './servers.mjs';

const folder = process.argv[2];
const ROUNDS = Number(process.env.ROUNDS ?? (quick ? 1 : 3));
const TOKENS = quick ? 24 : 64;
const model = (type) => path.resolve(folder, `${type}.gguf`);
const progress = (text) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

// Made-up pieces of the vocabulary, the same for the same seed.
function prompt(seed, length = 64) {
  let state = (seed + 1) * 2654435761 % 4294967296;
  return Array.from({ length }, () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return 259 + Math.floor((state / 4294967296) * 31000);
  });
}

const requests = (count, adapterOf, tokens = TOKENS) =>
  Array.from({ length: count }, (_, i) => ({ prompt: prompt(i), tokens, adapter: adapterOf(i) }));

const MIXES = {
  base_1: requests(1, () => null),
  base_8: requests(8, () => null),
  shared_8: requests(8, () => 0),
  different_8: requests(8, (i) => i),
};

async function throughput(type, { threads, cores, metric }) {
  const options = { threads, cores, adapters: 16, folder };
  const servers = [await startMolly(model(type), options), await startLlama(model(type), options)];
  servers.push(Object.assign(await startMolly(model(type), { ...options, args: ['--adapter-type', 'q8_0'] }), { name: 'q8_0 adapters' }));
  const samples = {};
  try {
    for (const server of servers) await load(server, requests(8, (i) => i, 4));
    for (let round = 0; round < ROUNDS; ++round) {
      for (const [mix, wanted] of Object.entries(MIXES)) {
        for (const server of servers) {
          const result = await load(server, wanted);
          progress(`${type} ${metric} ${mix} ${server.name}: ${rounded(result.tokens / result.seconds)} tokens/s, ${rounded(result.tokens / result.cpu)} per CPU second`);
          (samples[`${server.name} ${mix}`] ??= []).push(result);
        }
      }
    }
  } finally {
    for (const server of servers) await server.stop();
  }
  const speed = (name) => median(samples[name].map((one) => one.tokens / (metric === 'cpu' ? one.cpu : one.seconds)));
  // Of pairs of one round, so that a change of the machine's mood touches both sides.
  const ratio = (a, b) => median(samples[a].map((one, i) => {
    const cost = (result) => (metric === 'cpu' ? result.cpu : result.seconds);
    return cost(samples[b][i]) / cost(one);
  }));
  const out = { metric, speed: {}, against_llama: {} };
  for (const mix of Object.keys(MIXES)) {
    out.speed[mix] = { molly: rounded(speed(`molly-engine ${mix}`)), llama: rounded(speed(`llama-server ${mix}`)) };
    out.against_llama[mix] = rounded(ratio(`molly-engine ${mix}`, `llama-server ${mix}`), 2);
  }
  for (const [kind, server] of [['f16', 'molly-engine'], ['q8_0', 'q8_0 adapters']]) {
    out[`cost_of_different_${kind}`] = rounded(100 * (1 - ratio(`${server} different_8`, `${server} base_8`)), 1);
    out[`different_over_shared_${kind}`] = rounded(ratio(`${server} different_8`, `${server} shared_8`), 3);
    out[`different_against_llama_${kind}`] = rounded(ratio(`${server} different_8`, 'llama-server different_8'), 2);
  }
  const spread = (server) => rounded(median(samples[`${server} different_8`].map((one) => Math.max(...one.firsts) / Math.min(...one.firsts))), 2);
  out.last_over_first_token = { molly: spread('molly-engine'), llama: spread('llama-server') };
  return out;
}

async function adapterCurve(counts) {
  const options = { threads: 1, cores: '0', adapters: Math.max(...counts), folder };
  const curve = [];
  for (const count of counts) {
    const point = { adapters: count };
    for (const start of [startMolly, startLlama]) {
      const parallel = start === startLlama ? 16 : 64;
      const server = await start(model('q4_0'), { ...options, adapters: count, parallel, pool: '3GiB' });
      try {
        await load(server, requests(Math.min(count, 16), (i) => i, 2));
        const result = await load(server, requests(16, (i) => i % count, quick ? 8 : 32));
        const many = count > 16 ? await load(server, requests(count, (i) => i, quick ? 4 : 16)) : result;
        point[server.name] = rounded(many.tokens / many.cpu);
      } finally {
        await server.stop();
      }
    }
    progress(`${count} adapters: ${JSON.stringify(point)}`);
    curve.push(point);
  }
  return curve;
}

async function metrics(server) {
  const { body } = await call(server, 'GET', '/metrics');
  return (name) => Number(new RegExp(`^molly_engine_${name} ([\\d.e+]+)$`, 'm').exec(body)?.[1] ?? NaN);
}

/** Prefill work of eight requests that share 1,000 tokens, over one request's. */
async function sharedPrefix() {
  const server = await startMolly(model('q4_0'), { threads: 1, cores: '0', adapters: 1, folder });
  const shared = prompt(77, 1000);
  server.choose = () => ({ adapter: adapterName(0), cache_domain: 'bench' });
  try {
    const computed = (result) => result.usages.reduce((sum, one) => sum + one.prompt_tokens - (one.prompt_tokens_details?.cached_tokens ?? 0), 0);
    const result = await load(server, Array.from({ length: 8 }, (_, i) => ({ prompt: [...shared, ...prompt(200 + i, 16)], tokens: 2, adapter: 0 })));
    return { computed_tokens: computed(result), one_request: 1016, ratio: rounded(computed(result) / 1016, 3) };
  } finally {
    await server.stop();
  }
}

/** A file leaves the page cache only when nobody maps it and it is clean. */
function dropFromCache(file) {
  return new Promise((resolve) => spawn('dd', [`if=${file}`, 'iflag=nocache', 'count=0'], { stdio: 'ignore' }).on('close', resolve));
}

/** Milliseconds by which a first request for an adapter is later than the next one for it. */
async function adapterLoads() {
  const server = await startMolly(model('q4_0'), { threads: 1, cores: '0', adapters: 16, folder });
  const out = { cold: [], hot: [] };
  try {
    await load(server, requests(1, () => null, 2));
    for (let number = 0; number < 16; ++number) {
      await dropFromCache(path.resolve(folder, `${adapterName(number)}.gguf`));
      const ask = () => complete(server, { prompt: prompt(3, 4), tokens: 1, adapter: number });
      const first = (await ask()).end;
      const again = median([(await ask()).end, (await ask()).end, (await ask()).end]);
      out.cold.push(first - again);
      out.hot.push(again);
    }
    return { cold_ms: rounded(median(out.cold)), worst_ms: rounded(Math.max(...out.cold)), request_ms: rounded(median(out.hot)) };
  } finally {
    await server.stop();
  }
}

async function idleMemory() {
  const server = await startMolly(model('q4_0'), { threads: 1, cores: '0', adapters: 0, folder, pool: '64MiB', args: ['--warm', '1MiB'] });
  try {
    await load(server, requests(1, () => null, 2));
    const file = fs.statSync(model('q4_0')).size / 2 ** 20;
    return { pss_mib: rounded(pss(server.pid)), file_mib: rounded(file), pool_mib: 64 };
  } finally {
    await server.stop();
  }
}

/** Tokens per second of wall time with two threads: idle, spinning, and beside a process that takes one core. */
async function busyNeighbour() {
  const out = {};
  const wanted = requests(8, (i) => i, quick ? 16 : 48);
  const servers = { sleeping: await startMolly(model('q4_0'), { threads: 2, adapters: 8, folder }), spinning: await startMolly(model('q4_0'), { threads: 2, adapters: 8, folder, args: ['--spin'] }) };
  try {
    const samples = { sleeping: [], spinning: [], sleeping_busy: [] };
    for (let round = 0; round < ROUNDS; ++round) {
      for (const [name, server] of Object.entries(servers)) {
        if (round === 0) await load(server, requests(8, (i) => i, 2));
        const result = await load(server, wanted);
        samples[name].push(result.tokens / result.seconds);
      }
      const burner = spawn('taskset', ['-c', '1', 'sh', '-c', 'while :; do :; done']);
      const result = await load(servers.sleeping, wanted);
      burner.kill('SIGKILL');
      samples.sleeping_busy.push(result.tokens / result.seconds);
    }
    for (const [name, values] of Object.entries(samples)) out[name] = rounded(median(values));
    out.idle_over_spinning = rounded(out.sleeping / out.spinning, 3);
    out.busy_over_idle = rounded(out.sleeping_busy / out.sleeping, 3);
    return out;
  } finally {
    for (const server of Object.values(servers)) await server.stop();
  }
}

/** Requests for 1,000 names over 64 adapter files, by Zipf's law, against requests for eight that stay hot. One thread
 * computes; the thread that reads adapters has the other core, as on the machines that this is for. */
async function zipf() {
  const server = await startMolly(model('q4_0'), { threads: 1, adapters: 0, folder, pool: '512MiB', args: ['--warm', '2GiB'] });
  const count = quick ? 100 : 1000;
  try {
    for (let number = 0; number < count; ++number) {
      await call(server, 'POST', '/adapters', { name: adapterName(number), path: path.resolve(folder, `${adapterName(number % 64)}.gguf`) });
    }
    const weights = Array.from({ length: count }, (_, i) => (i + 1) ** -1.1);
    const total = weights.reduce((a, b) => a + b);
    let state = 12345;
    const draw = () => {
      state = (state * 1664525 + 1013904223) % 4294967296;
      let left = (state / 4294967296) * total;
      return weights.findIndex((weight) => (left -= weight) <= 0);
    };
    const asked = quick ? 48 : 400;
    const run = async (choose) => {
      const wanted = Array.from({ length: asked }, (_, i) => ({ prompt: prompt(i, 16), tokens: 8, adapter: choose() }));
      const began = performance.now();
      const firsts = [];
      let next = 0;
      await Promise.all(Array.from({ length: 8 }, async () => {
        while (next < wanted.length) firsts.push((await complete(server, wanted[next++])).first);
      }));
      return { rate: (asked * 8000) / (performance.now() - began), p99: percentile(firsts, 0.99) };
    };
    await run(() => Math.floor(Math.random() * 8));
    const hot = await run(() => Math.floor(Math.random() * 8));
    const mixed = await run(draw);
    const read = await metrics(server);
    return { adapters: count, all_hot_tokens_s: rounded(hot.rate), zipf_tokens_s: rounded(mixed.rate), ratio: rounded(mixed.rate / hot.rate, 3), first_token_p99_ms: rounded(mixed.p99), adapter_loads: read('adapter_loads_total') };
  } finally {
    await server.stop();
  }
}

const figures = { machine: machine(), rounds: ROUNDS, tokens: TOKENS, cpu: {}, wall: {} };
// ONLY=cpu,zipf measures these alone and writes no results.
const only = process.env.ONLY?.split(',');
const wanted = (name) => !only || only.includes(name);
if (wanted('cpu')) for (const type of ['q4_0', 'q4_k_m']) figures.cpu[type] = await throughput(type, { threads: 1, cores: '0', metric: 'cpu' });
if (wanted('wall')) for (const type of quick ? ['q4_0'] : ['q4_0', 'q4_k_m']) figures.wall[type] = await throughput(type, { threads: 2, metric: 'wall' });
const program = (name, ...args) => JSON.parse(execFileSync(fileURLToPath(new URL(`../../build/release/bin/${name}`, import.meta.url)), args));
const loads = () => program('bench_loads', model('q4_0'), ...Array.from({ length: 16 }, (_, i) => path.resolve(folder, `${adapterName(i)}.gguf`)));
const steps = () => Object.fromEntries((quick ? ['q4_0'] : ['q4_0', 'q4_k_m']).map((type) => [type, program('bench_steps', model(type))]));
const parts = { loads, steps, shared_prefix: sharedPrefix, adapter_loads: adapterLoads, idle_memory: idleMemory, busy_neighbour: busyNeighbour, zipf, curve: () => adapterCurve(quick ? [1, 8] : [1, 2, 4, 8, 16, 32, 64]) };
for (const [name, measure] of Object.entries(parts)) {
  if (!wanted(name)) continue;
  progress(name);
  figures[name] = await measure();
  progress(JSON.stringify(figures[name]));
}
if (only) {
  console.log(JSON.stringify(figures));
  process.exit(0);
}

const rows = [];
for (const metric of ['cpu', 'wall']) {
  for (const [type, result] of Object.entries(figures[metric])) {
    for (const mix of Object.keys(MIXES)) {
      rows.push([`${type}, ${metric === 'cpu' ? 'one thread, per CPU second' : 'two threads, per second'}, ${mix.replace('_', ' ')}`, result.speed[mix].molly, result.speed[mix].llama, result.against_llama[mix]]);
    }
  }
}
const text = `# molly-engine and llama-server

Generated tokens with prompts of 64 and answers of ${TOKENS} tokens, medians of ${ROUNDS} rounds; ratios are medians of pairs.

${table(['case', 'molly-engine', 'llama-server', 'ratio'], rows)}

${table(['measure', 'value'], [
    ...['f16', 'q8_0'].flatMap((kind) => [
      [`cost of 8 different adapters over base, Q4_0, adapters in ${kind} (%)`, figures.cpu.q4_0[`cost_of_different_${kind}`]],
      [`8 different over one shared adapter, Q4_0, adapters in ${kind}`, figures.cpu.q4_0[`different_over_shared_${kind}`]],
    ]),
    ['last over first of 8 first tokens', `${figures.cpu.q4_0.last_over_first_token.molly} (llama-server ${figures.cpu.q4_0.last_over_first_token.llama})`],
    ['prefill of 8 requests with a shared prefix over one', figures.shared_prefix.ratio],
    ['a cold adapter\'s first request later than the next, ms', figures.adapter_loads.cold_ms],
    ['adapter of 14 MB: file to rows, not in the page cache, ms', figures.loads.cold_ms],
    ['adapter of 14 MB: file to rows, in the page cache, ms', figures.loads.warm_file_ms],
    ['adapter of 14 MB: promotion into the pool, ms', figures.loads.promotion_ms],
    ...Object.entries(figures.steps).flatMap(([type, { decode_8, decode_1, prefill }]) => [
      [`step of 8 sequences of 2,048 tokens, ${type}: paged over contiguous attention (goal: at most 0.45)`, decode_8.ratio],
      [`step of one sequence of 2,048 tokens, ${type}: paged over contiguous attention`, decode_1.ratio],
      [`prompt of 2,048 tokens in chunks of 512, ${type}: paged over contiguous attention (goal: at most 1)`, prefill.ratio],
    ]),
    ['idle memory (PSS), model file, pool; MiB', `${figures.idle_memory.pss_mib}, ${figures.idle_memory.file_mib}, ${figures.idle_memory.pool_mib}`],
    ['sleeping over spinning threads, idle machine', figures.busy_neighbour.idle_over_spinning],
    ['beside a busy process over idle', figures.busy_neighbour.busy_over_idle],
    [`${figures.zipf.adapters} adapters by Zipf over all hot (one computing thread, two cores)`, figures.zipf.ratio],
    ['first token p99 there, ms', figures.zipf.first_token_p99_ms],
  ])}
`;
const points = (name) => figures.curve.map((one) => `${one.adapters} ${one[name]}`).join('\n');
write('engine', {
  text, figures,
  plot: `set logscale x 2\nset xlabel "different adapters"\nset ylabel "tokens per CPU second"\nset yrange [0:*]\nset key top right\n$molly << E\n${points('molly-engine')}\nE\n$llama << E\n${points('llama-server')}\nE\nplot $molly with linespoints lw 2 title "molly-engine", $llama with linespoints lw 2 title "llama-server"`,
});
