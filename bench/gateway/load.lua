-- One chat request again and again; the gateway's headers come in the environment as "name=value" lines.
wrk.method = "POST"
wrk.path = "/v1/chat/completions"
wrk.headers["Content-Type"] = "application/json"
for name, value in string.gmatch(os.getenv("LOAD_HEADERS") or "", "([^=\n]+)=([^\n]+)") do wrk.headers[name] = value end
local stream = os.getenv("LOAD_STREAM") == "1" and ',"stream":true' or ""
wrk.body = '{"model":"' .. os.getenv("LOAD_MODEL") .. '","messages":[{"role":"system","content":"You are a helpful assistant."},' ..
  '{"role":"user","content":"Say hello to the world in one short sentence, please."}],"max_tokens":32,"temperature":0' .. stream .. "}"
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('\nRESULT {"requests":%d,"seconds":%.6f,"p50":%d,"p99":%d,"failed":%d}\n', summary.requests, summary.duration / 1e6,
    latency:percentile(50), latency:percentile(99), errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
