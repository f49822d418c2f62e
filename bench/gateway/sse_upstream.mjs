// A target that streams as fast as it can: 34 chunks an answer, each a write of its own, from prepared bytes.
// usage: node sse_upstream.mjs PORT
import net from 'node:net';

export const CHUNKS = 34;
const chunk = (delta, finish_reason = null) => {
  const text = `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1700000000, model: 'bench', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
};
const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n';
const done = 'data: [DONE]\n\n';
const pieces = [
  head + chunk({ role: 'assistant', content: '' }),
  ...Array.from({ length: CHUNKS - 2 }, () => chunk({ content: 'tok ' })),
  `${chunk({}, 'stop')}${done.length.toString(16)}\r\n${done}\r\n0\r\n\r\n`,
].map((text) => Buffer.from(text));

function answer(socket) {
  let next = 0;
  const step = () => {
    if (socket.destroyed) return;
    socket.write(pieces[next++]);
    if (next < pieces.length) setImmediate(step);
  };
  step();
}

if (process.argv[2]) {
  net.createServer((socket) => {
    socket.setNoDelay(true);
    let waiting = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      waiting = waiting.length ? Buffer.concat([waiting, bytes]) : bytes;
      const end = waiting.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/^content-length: *(\d+)/im.exec(waiting.subarray(0, end).toString('latin1'))?.[1] ?? 0);
      if (waiting.length < end + 4 + length) return;
      waiting = waiting.subarray(end + 4 + length);
      answer(socket);
    });
    socket.on('error', () => {});
  }).listen(Number(process.argv[2]), '127.0.0.1');
}
