// With nothing configured and nothing reachable, the embedded model answers, served by molly-engine.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { localModelCases } from '../local_model_cases.mjs';
import { Molly, scenario as plain } from '../harness.mjs';

localModelCases({ config: '', runtime: 'molly-engine' });

let shared;
before(async () => (shared = await Molly.start({ config: '[models]\nthreads = 1\n' })));
after(() => shared?.remove());
const scenario = (name, body) => plain(name, { molly: () => shared, timeout: 120_000 }, body);

const ask = async (first, { headers = {}, ...extra } = {}) => {
  const messages = [{ role: 'user', content: `${first}: ${'a long beginning that comes again '.repeat(30)}` }];
  const body = { model: 'nano', messages, max_tokens: 2, ...extra };
  const { data, response } = await shared.client({ timeout: 60_000 }).chat.completions.create(body, { headers }).withResponse();
  return { cached: data.usage.prompt_tokens_details?.cached_tokens ?? 0, trace: response.headers.get('x-molly-trace') };
};

scenario('a beginning that comes again is computed once', async () => {
  assert.equal((await ask('Again')).cached, 0);
  assert.ok((await ask('Again')).cached >= 64);
});

scenario('cached beginnings are not shared between labels, whatever the client says', async () => {
  const headers = { 'x-molly-confidentiality': 'secret' };
  const { cached, trace } = await ask('Labels', { headers });
  assert.equal(cached, 0);
  assert.ok((await ask('Labels', { headers })).cached >= 64);
  assert.equal((await ask('Labels')).cached, 0, 'another label');
  const { label } = (await shared.runJson(['explain', trace])).sovereignty;
  assert.match(label, /^secret/);
  const stolen = await ask('Labels', { headers: { 'x-molly-confidentiality': 'confidential' }, cache_domain: `owner|${label}` });
  assert.equal(stolen.cached, 0, 'a domain that the client made up');
});
