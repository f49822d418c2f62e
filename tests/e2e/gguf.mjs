// Adapters with random numbers for a base model: its shapes are read from the base's own GGUF header.
import fs from 'node:fs';

const SIZES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

/**
 * { architecture, tensors: Map(name -> [columns, rows]), chatTemplate: { begin, end }, end } of a GGUF file; places are
 * byte positions, of the template with its length before it.
 */
export function readHeader(file) {
  const bytes = fs.readFileSync(file);
  let at = 8;
  const u32 = () => bytes.readUInt32LE((at += 4) - 4);
  const u64 = () => Number(bytes.readBigUInt64LE((at += 8) - 8));
  const text = () => {
    const length = u64();
    return bytes.toString('utf8', at, (at += length));
  };
  const value = (type) => {
    if (type === 8) return text();
    if (type !== 9) return void (at += SIZES[type]);
    const inner = u32();
    for (let left = u64(); left > 0; --left) value(inner);
  };
  const tensorCount = u64();
  const keys = u64();
  let architecture = '';
  let chatTemplate = null;
  for (let i = 0; i < keys; ++i) {
    const key = text();
    const type = u32();
    const begin = at;
    const read = value(type);
    if (key === 'general.architecture') architecture = read;
    if (key === 'tokenizer.chat_template') chatTemplate = { begin, end: at };
  }
  const tensors = new Map();
  for (let i = 0; i < tensorCount; ++i) {
    const name = text();
    const dimensions = Array.from({ length: u32() }, u64);
    at += 12; // type and offset
    tensors.set(name, dimensions);
  }
  return { architecture, tensors, chatTemplate, end: at };
}

const ALIGNMENT = 32;
const aligned = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** Writes a copy of a model that has a chat template, with another one. */
export function writeWithTemplate(file, base, template) {
  const { chatTemplate, end } = readHeader(base);
  const bytes = fs.readFileSync(base);
  const text = Buffer.from(template);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const header = Buffer.concat([bytes.subarray(0, chatTemplate.begin), length, text, bytes.subarray(chatTemplate.end, end)]);
  fs.writeFileSync(file, Buffer.concat([header, Buffer.alloc(aligned(header.length) - header.length), bytes.subarray(aligned(end))]));
}

// A repeatable stream of numbers around zero.
function noise(seed) {
  let state = (seed * 2654435761 + 12345) % 4294967296;
  return () => (state = (state * 1664525 + 1013904223) % 4294967296) / 4294967296 - 0.5;
}

/** Writes a LoRA adapter in llama.cpp's form for the queries, values and feed-forward of every layer. */
export function writeAdapter(file, base, { rank = 4, seed = 1, strength = 1, architecture = null } = {}) {
  const header = readHeader(base);
  const next = noise(seed);
  const factors = [];
  for (const [name, [columns, rows]] of header.tensors) {
    if (!/^blk\.\d+\.(attn_q|attn_v|ffn_down)\.weight$/.test(name)) continue;
    const numbers = (count, scale) => Float32Array.from({ length: count }, () => next() * scale);
    factors.push({ name: `${name}.lora_a`, dimensions: [columns, rank], numbers: numbers(columns * rank, 3 / Math.sqrt(columns)) });
    factors.push({ name: `${name}.lora_b`, dimensions: [rank, rows], numbers: numbers(rows * rank, strength / Math.sqrt(rank)) });
  }
  const parts = [];
  const u32 = (number) => {
    const part = Buffer.alloc(4);
    part.writeUInt32LE(number);
    parts.push(part);
  };
  const u64 = (number) => {
    const part = Buffer.alloc(8);
    part.writeBigUInt64LE(BigInt(number));
    parts.push(part);
  };
  const text = (string) => {
    u64(Buffer.byteLength(string));
    parts.push(Buffer.from(string));
  };
  const entry = (key, string) => {
    text(key);
    u32(8);
    text(string);
  };
  parts.push(Buffer.from('GGUF'));
  u32(3);
  u64(factors.length);
  u64(4);
  entry('general.type', 'adapter');
  entry('general.architecture', architecture ?? header.architecture);
  entry('adapter.type', 'lora');
  text('adapter.lora.alpha');
  u32(6);
  const alpha = Buffer.alloc(4);
  alpha.writeFloatLE(rank);
  parts.push(alpha);
  let offset = 0;
  for (const { name, dimensions, numbers } of factors) {
    text(name);
    u32(2);
    dimensions.forEach(u64);
    u32(0); // F32
    u64(offset);
    offset += aligned(numbers.byteLength);
  }
  const pad = (bytes) => parts.push(Buffer.alloc(aligned(bytes) - bytes));
  pad(parts.reduce((sum, part) => sum + part.length, 0));
  for (const { numbers } of factors) {
    parts.push(Buffer.from(numbers.buffer));
    pad(numbers.byteLength);
  }
  fs.writeFileSync(file, Buffer.concat(parts));
}
