// A unix socket whose bytes reach another one, and come back, after so many milliseconds each way.
import net from 'node:net';

function pass(from, to, delay) {
  from.on('data', (bytes) => setTimeout(() => to.write(bytes), delay));
  from.on('end', () => setTimeout(() => to.end(), delay));
  from.on('error', () => to.destroy());
}

/** Resolves to a function that closes it. */
export function startDelay(listen, forward, delay) {
  const sockets = new Set();
  const server = net.createServer({ allowHalfOpen: true }, (near) => {
    const far = net.connect({ path: forward, allowHalfOpen: true });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
    pass(near, far, delay);
    pass(far, near, delay);
  });
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return new Promise((resolve) => server.listen(listen, () => resolve(close)));
}
