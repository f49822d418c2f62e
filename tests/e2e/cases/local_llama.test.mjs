// The embedded model in a real llama-server child, as the owner may choose.
import { localModelCases } from '../local_model_cases.mjs';

localModelCases({ config: '[models]\nruntime = "llama-server"\nthreads = 1\n', runtime: 'llama-server' });
