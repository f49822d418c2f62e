// One Molly with one scripted upstream "up", shared by the cases of a file.
import { after, before, beforeEach } from 'node:test';
import { Molly, scenario, target } from './harness.mjs';
import { Upstream } from './upstream.mjs';

/**
 * Call at the top of a file. `config(upstream)` gives the configuration's text. Returns an object whose
 * `molly`, `upstream` and `client` are there once the cases run, and `scenario` to write them with.
 */
export function withUpstream(config = (upstream) => target('up', upstream.url), options = {}) {
  const fixture = {
    scenario: (name, body, more = {}) => scenario(name, { molly: () => fixture.molly, ...more }, body),
  };
  before(async () => {
    fixture.upstream = await Upstream.start();
    fixture.molly = await Molly.start({ config: await config(fixture.upstream), ...options });
    fixture.client = fixture.molly.client();
  });
  beforeEach(() => fixture.upstream?.clear());
  after(async () => {
    await fixture.molly?.remove();
    await fixture.upstream?.close();
  });
  return fixture;
}
