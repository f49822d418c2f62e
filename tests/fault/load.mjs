// Many requests at a time, and what became of them.

export const runs = Number(process.env.FAULT_RUNS ?? 100);
export const concurrency = Number(process.env.FAULT_CONCURRENCY ?? 16);
export const tortureSteps = Number(process.env.TORTURE_STEPS ?? 30);
// A request that is not over after this time hangs.
export const hangs = 15_000;

/** Runs `job(i)` for i in 0..count-1, `width` at a time. */
export async function inParallel(count, width, job) {
  let next = 0;
  const worker = async () => {
    while (next < count) await job(next++);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, worker));
}

/**
 * One chat request over plain HTTP. Returns { outcome, text, detail, milliseconds, route }, where outcome is
 * "answer" (complete), "error" (a typed error by status), "event" (a typed error event inside the stream),
 * "silent" (the stream ended without DONE and without an error), "cut" (the connection broke) or "hang".
 */
export async function chat(url, model, { stream = false, deadline = hangs, messages = [{ role: 'user', content: 'Say hello.' }], ...more } = {}) {
  const started = performance.now();
  const done = (outcome, text = '', detail = '') => ({ outcome, text, detail, route, milliseconds: performance.now() - started });
  let text = '';
  let route = ''; // who answered, and who had failed before
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST', headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages, stream, ...more }), signal: AbortSignal.timeout(deadline),
    });
    route = answer.headers.get('x-molly-route') ?? '';
    const body = await answer.text();
    if (!answer.ok) {
      const error = JSON.parse(body).error;
      return done(error?.message && error?.type ? 'error' : 'silent', '', `${answer.status} ${error?.message}`);
    }
    if (!stream) return done('answer', JSON.parse(body).choices[0].message.content);
    for (const event of body.split('\n\n').filter((one) => one.startsWith('data: ')).map((one) => one.slice(6))) {
      if (event === '[DONE]') return done('answer', text);
      const value = JSON.parse(event);
      if (value.error) return done(value.error.message && value.error.type ? 'event' : 'silent', text, value.error.message);
      text += value.choices[0]?.delta.content ?? '';
    }
    return done('silent', text, 'the stream ended without [DONE] and without an error');
  } catch (error) {
    if (error.name === 'TimeoutError') return done('hang', text, error.message);
    return done('cut', text, error.cause?.code ?? error.message);
  }
}

/** How many of each outcome, with an example of each that is not `good`. */
export function summary(results, good = 'answer') {
  const counts = {};
  const examples = [];
  for (const one of results) {
    if (one.outcome !== good && !counts[one.outcome]) examples.push(`${one.outcome}: ${one.detail || one.text}`);
    counts[one.outcome] = (counts[one.outcome] ?? 0) + 1;
  }
  return `${JSON.stringify(counts)} ${examples.join('; ')}`;
}

