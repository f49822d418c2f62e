// molly-engine with a second model that guesses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EngineProcess, nano } from '../engine_process.mjs';

test('a draft model guesses, is counted, and changes nothing', async () => {
  const engine = await EngineProcess.start({ args: ['--draft-model', nano, '--draft-pool', '8MiB'] });
  try {
    for (const more of [{}, { temperature: 1.3, seed: 3 }]) {
      const ask = async (drafting) => (await engine.chat({ ...more, drafting, max_tokens: 60, ignore_eos: true })).json();
      const plain = await ask('off');
      const drafted = await ask('model');
      assert.equal(drafted.choices[0].message.content, plain.choices[0].message.content);
      const { n = 0, n_accepted: accepted = 0 } = drafted.timings.drafts.model ?? {};
      assert.equal(accepted, n, 'a model agrees with itself');
    }
    assert.match((await engine.call('GET', '/metrics')).text, /^molly_engine_draft_seconds_total\{source="model"\} /m);
  } finally {
    assert.equal(await engine.stop(), 0, engine.log);
  }
});
