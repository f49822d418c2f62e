// What every benchmark shares: statistics, the results folder, tables, plots.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const results = fileURLToPath(new URL('results/', import.meta.url));
export const quick = process.env.QUICK === '1';

export function percentile(values, share) {
  const sorted = values.filter((one) => Number.isFinite(one)).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : null;
}
export const median = (values) => percentile(values, 0.5);

export function rounded(value, digits = 1) {
  return value === null || !Number.isFinite(value) ? null : Number(value.toFixed(digits));
}

export function table(header, rows) {
  const cell = (value) => (value === null || value === undefined ? '-' : String(value));
  const width = header.map((name, i) => Math.max(name.length, ...rows.map((row) => cell(row[i]).length)));
  const line = (row) => `| ${row.map((value, i) => (i === 0 ? cell(value).padEnd(width[i]) : cell(value).padStart(width[i]))).join(' | ')} |`;
  const rule = `|${width.map((w, i) => (i === 0 ? '-'.repeat(w + 2) : `${'-'.repeat(w + 1)}:`)).join('|')}|`;
  return [line(header), rule, ...rows.map(line)].join('\n');
}

/** The machine, as far as figures depend on it. */
export function machine() {
  const version = (command, args) => {
    const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    return `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n')[0];
  };
  return {
    processor: os.cpus()[0]?.model.trim(), cores: os.cpus().length, kernel: os.release(), node: process.version,
    nginx: version('nginx', ['-v']).replace(/.*nginx\//, ''), load: rounded(os.loadavg()[0], 2),
  };
}

/** Writes results/NAME.json, .md and, from a gnuplot script that draws to the current terminal, .svg. */
export function write(name, { text, figures, plot, size = '960,380' }) {
  fs.mkdirSync(results, { recursive: true });
  fs.writeFileSync(path.join(results, `${name}.json`), `${JSON.stringify(figures, null, 2)}\n`);
  fs.writeFileSync(path.join(results, `${name}.md`), text);
  const script = `set terminal svg size ${size} font "sans,12" background "white"\nset output "${path.join(results, `${name}.svg`)}"\n${plot}\n`;
  try {
    execFileSync('gnuplot', [], { input: script, stdio: ['pipe', 'ignore', 'pipe'] });
  } catch (error) {
    console.error(`no plot: ${error.stderr ?? error.message}`);
  }
  console.log(text);
  console.log(JSON.stringify(figures));
}

/** CPU nanoseconds of these processes with all their threads. */
export function cpuTime(pids) {
  let total = 0n;
  for (const pid of pids) {
    for (const task of readdir(`/proc/${pid}/task`)) {
      const text = read(`/proc/${pid}/task/${task}/schedstat`);
      if (text) total += BigInt(text.split(' ')[0]);
    }
  }
  return Number(total);
}

/** Resident memory of these processes together, in MiB; pages that they share count for each of them. */
export function residentMiB(pids) {
  let kilobytes = 0;
  for (const pid of pids) kilobytes += Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1] ?? 0);
  return kilobytes / 1024;
}

function readdir(folder) {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
