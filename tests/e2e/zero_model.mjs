// A model file of the size of a real one whose numbers are all zero: a sparse file, made in a moment.
import fs from 'node:fs';

const Q4_0 = 2;
const F32 = 0;
const shape = { layers: 32, embedding: 1024, heads: 16, feedForward: 4096, vocabulary: 512, context: 1024 };

class Header {
  parts = [];
  number(bytes, write) {
    const part = Buffer.alloc(bytes);
    write(part);
    this.parts.push(part);
  }
  u32(value) {
    this.number(4, (part) => part.writeUInt32LE(value));
  }
  u64(value) {
    this.number(8, (part) => part.writeBigUInt64LE(BigInt(value)));
  }
  f32(value) {
    this.number(4, (part) => part.writeFloatLE(value));
  }
  text(value) {
    this.u64(Buffer.byteLength(value));
    this.parts.push(Buffer.from(value));
  }
  key(name, type) {
    this.text(name);
    this.u32(type);
  }
  array(name, type, values, write) {
    this.key(name, 9);
    this.u32(type);
    this.u64(values.length);
    values.forEach(write);
  }
  bytes() {
    return Buffer.concat(this.parts);
  }
}

function tensors() {
  const { layers, embedding, feedForward, vocabulary } = shape;
  const all = [['token_embd.weight', [embedding, vocabulary], Q4_0], ['output.weight', [embedding, vocabulary], Q4_0], ['output_norm.weight', [embedding], F32]];
  for (let layer = 0; layer < layers; ++layer) {
    for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) all.push([`blk.${layer}.${name}.weight`, [embedding, embedding], Q4_0]);
    for (const name of ['ffn_gate', 'ffn_up']) all.push([`blk.${layer}.${name}.weight`, [embedding, feedForward], Q4_0]);
    all.push([`blk.${layer}.ffn_down.weight`, [feedForward, embedding], Q4_0]);
    for (const name of ['attn_norm', 'ffn_norm']) all.push([`blk.${layer}.${name}.weight`, [embedding], F32]);
  }
  return all;
}

function tokens() {
  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`);
  const texts = ['<unk>', '<s>', '</s>', ...bytes];
  while (texts.length < shape.vocabulary) texts.push(`\u2581w${texts.length}`);
  return texts;
}

function writeKeys(header) {
  const sizes = { block_count: shape.layers, context_length: shape.context, embedding_length: shape.embedding, feed_forward_length: shape.feedForward, 'attention.head_count': shape.heads, 'attention.head_count_kv': shape.heads };
  header.key('general.architecture', 8);
  header.text('llama');
  for (const [name, value] of Object.entries(sizes)) {
    header.key(`llama.${name}`, 4);
    header.u32(value);
  }
  header.key('llama.attention.layer_norm_rms_epsilon', 6);
  header.f32(1e-5);
  header.key('tokenizer.ggml.model', 8);
  header.text('llama');
  const texts = tokens();
  header.array('tokenizer.ggml.tokens', 8, texts, (text) => header.text(text));
  header.array('tokenizer.ggml.scores', 6, texts, () => header.f32(0));
  header.array('tokenizer.ggml.token_type', 5, texts, (text, i) => header.u32(i === 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1));
  return Object.keys(sizes).length + 6;
}

const bytesOf = (dimensions, type) => (dimensions.reduce((a, b) => a * b, 1) * (type === Q4_0 ? 18 / 32 : 4));
const aligned = (bytes) => Math.ceil(bytes / 32) * 32;

export function writeZeroModel(file) {
  const keys = new Header();
  const count = writeKeys(keys);
  const all = tensors();
  const header = new Header();
  header.parts.push(Buffer.from('GGUF'));
  header.u32(3);
  header.u64(all.length);
  header.u64(count);
  header.parts.push(keys.bytes());
  let offset = 0;
  for (const [name, dimensions, type] of all) {
    header.text(name);
    header.u32(dimensions.length);
    dimensions.forEach((size) => header.u64(size));
    header.u32(type);
    header.u64(offset);
    offset += aligned(bytesOf(dimensions, type));
  }
  const bytes = header.bytes();
  fs.writeFileSync(file, bytes);
  fs.truncateSync(file, aligned(bytes.length) + offset);
}
