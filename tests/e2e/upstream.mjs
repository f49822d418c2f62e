// A scripted OpenAI-compatible server: every request is answered by a behaviour (an async function of an
// Exchange), so that a test can misbehave at any byte. It speaks HTTP/1.1 over raw sockets, because what
// it must do (resets, half frames, bytes that are no HTTP at all) no HTTP library allows.
import net from 'node:net';
import tls from 'node:tls';
import { whole } from './answers.mjs';

const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'scripted', object: 'model', created: 1700000000, owned_by: 'tests' }] });

/** One request and the means to answer it. Writes after the client left are dropped. */
export class Exchange {
  constructor(socket, request) {
    this.socket = socket;
    this.request = request;
    this.chunked = false;
  }

  get gone() {
    return this.socket.destroyed || this.request.disconnectedAt !== null;
  }

  raw(bytes) {
    if (!this.gone) this.socket.write(bytes);
  }

  /** Sends the status line and headers; a null content-length means chunked. */
  head(status, headers = {}, length = null) {
    this.chunked = length === null;
    const framing = this.chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) };
    const lines = Object.entries({ ...framing, ...headers }).flatMap(([name, value]) =>
      [value].flat().map((one) => `${name}: ${one}\r\n`));
    this.raw(`HTTP/1.1 ${status} Scripted\r\n${lines.join('')}\r\n`);
  }

  /** One piece of the body, framed as the head announced. */
  body(text) {
    if (!this.chunked) return this.raw(text);
    const bytes = Buffer.from(text);
    this.raw(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]));
  }

  /** One server-sent event with this value as its data. */
  event(value) {
    this.body(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);
  }

  end() {
    if (this.chunked) this.raw('0\r\n\r\n');
  }

  reply(status, body, headers = {}) {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    this.head(status, { 'content-type': 'application/json', ...headers }, Buffer.byteLength(text));
    this.raw(text);
  }

  /** Ends the connection with a RST. */
  reset() {
    this.socket.resetAndDestroy?.() ?? this.socket.destroy();
  }

  /** Ends the connection with a FIN. */
  close() {
    this.socket.end();
  }

  /** Waits; returns early when the client leaves. */
  sleep(milliseconds) {
    if (this.gone) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.request.disconnected.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Says nothing until the client leaves. */
  stall() {
    return this.request.disconnected;
  }
}

/** What the upstream saw of one request. */
class Recorded {
  constructor(method, path, headers, connection) {
    Object.assign(this, { method, path, headers, connection });
    this.body = Buffer.alloc(0);
    this.receivedAt = performance.now();
    this.answeredAt = null; // when its behaviour finished
    this.disconnectedAt = null; // when the client left, if it did before the answer was complete
    this.disconnected = new Promise((resolve) => {
      this.leave = () => {
        if (this.disconnectedAt === null && this.answeredAt === null) this.disconnectedAt = performance.now();
        resolve(this);
      };
    });
  }

  get text() {
    return this.body.toString('utf8');
  }

  json() {
    return JSON.parse(this.text);
  }
}

export class Upstream {
  /** All requests with a body (POST), in order of arrival. */
  requests = [];
  /** Requests without one: health probes and model lists. */
  probes = [];
  connections = 0;
  open = new Set();
  queue = [];
  fallback = whole();
  probe = (exchange) => exchange.reply(200, MODELS);
  #waiting = [];

  /**
   * Listens on a free loopback port, or on `path` (a unix socket); `certificate` {cert, key} makes it TLS.
   */
  static async start({ path = null, port = 0, certificate = null } = {}) {
    const upstream = new Upstream();
    const accept = (socket) => upstream.#serve(socket);
    upstream.server = certificate ? tls.createServer(certificate, accept) : net.createServer(accept);
    upstream.server.on('tlsClientError', () => {});
    await new Promise((resolve, reject) => {
      upstream.server.once('error', reject);
      if (path) upstream.server.listen(path, resolve);
      else upstream.server.listen(port, '127.0.0.1', resolve);
    });
    upstream.path = path;
    upstream.port = path ? null : upstream.server.address().port;
    upstream.url = path ? `unix:${path}` : `${certificate ? 'https' : 'http'}://127.0.0.1:${upstream.port}/v1`;
    return upstream;
  }

  /** What every request gets that no `next` was queued for. */
  answer(behaviour) {
    this.fallback = behaviour;
    return this;
  }

  /** What the next requests get, one each. */
  next(...behaviours) {
    this.queue.push(...behaviours);
    return this;
  }

  /** Forgets what was recorded and queued, for the next test. */
  clear() {
    this.requests = [];
    this.probes = [];
    this.queue = [];
    this.fallback = whole();
    return this;
  }

  get last() {
    return this.requests.at(-1);
  }

  /** Resolves with the n-th request (from 1) as soon as it has arrived. */
  received(n = 1) {
    if (this.requests.length >= n) return Promise.resolve(this.requests[n - 1]);
    return new Promise((resolve) => this.#waiting.push({ n, resolve }));
  }

  /** Stops listening and ends every connection. */
  async close() {
    for (const socket of this.open) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #serve(socket) {
    const connection = ++this.connections;
    this.open.add(socket);
    socket.setNoDelay?.(true);
    let buffered = Buffer.alloc(0);
    let current = null; // the request being answered
    const left = () => {
      this.open.delete(socket);
      current?.leave();
    };
    socket.on('close', left);
    socket.on('end', left);
    socket.on('error', left);
    const advance = async () => {
      if (current) return; // HTTP/1.1: one at a time
      if (buffered.length && !/[A-Z]/.test(String.fromCharCode(buffered[0]))) { // such as TLS on a plain port
        socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
        return;
      }
      const parsed = parseRequest(buffered, connection);
      if (!parsed) return;
      buffered = parsed.rest;
      current = parsed.request;
      await this.#answer(socket, current);
      current = null;
      if (!socket.destroyed) await advance();
    };
    socket.on('data', (bytes) => {
      buffered = Buffer.concat([buffered, bytes]);
      advance().catch((error) => socket.destroy(error));
    });
  }

  async #answer(socket, request) {
    const exchange = new Exchange(socket, request);
    if (request.method === 'GET') {
      this.probes.push(request);
      await this.probe(exchange);
    } else {
      this.requests.push(request);
      const behaviour = this.queue.shift() ?? this.fallback;
      this.#waiting = this.#waiting.filter(({ n, resolve }) => (this.requests.length >= n ? resolve(this.requests[n - 1]) : true));
      await behaviour(exchange);
    }
    if (request.disconnectedAt === null) request.answeredAt = performance.now();
  }
}

/** The first whole request in `bytes`, or null when more must come. */
function parseRequest(bytes, connection) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [first, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const [method, path] = first.split(' ');
  const headers = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const request = new Recorded(method, path, headers, connection);
  const after = bytes.subarray(end + 4);
  if (headers['transfer-encoding'] === 'chunked') {
    const body = parseChunks(after);
    if (!body) return null;
    request.body = body.bytes;
    return { request, rest: body.rest };
  }
  const length = Number(headers['content-length'] ?? 0);
  if (after.length < length) return null;
  request.body = Buffer.from(after.subarray(0, length));
  return { request, rest: after.subarray(length) };
}

function parseChunks(bytes) {
  const parts = [];
  for (let at = 0; ;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return null;
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16);
    const next = line + 2 + size + 2;
    if (bytes.length < next) return null;
    if (size === 0) return { bytes: Buffer.concat(parts), rest: bytes.subarray(next) };
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = next;
  }
}

/** A loopback port that nothing listens on. */
export async function closedPort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
