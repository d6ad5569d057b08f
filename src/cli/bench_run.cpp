#include "cli/bench_run.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace vitrine {
namespace {

using Streams = std::vector<std::shared_ptr<TokenStream>>;

// FNV-1a over the bits of a row of logits.
std::uint64_t hash_logits(const std::vector<float>& row) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (float x : row) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    for (int i = 0; i < 4; ++i) hash = (hash ^ ((bits >> (8 * i)) & 255)) * 0x100000001b3;
  }
  return hash;
}

// `first` is the step that the run begins with; it makes the prompts new to the prefix cache.
Result<Streams> submit_all(Engine& engine, int prompt, int tokens, std::uint64_t first) {
  int vocab = engine.info().vocab, sequences = engine.memory().sequences;
  Streams streams;
  for (int s = 0; s < sequences; ++s) {
    Request request;
    for (int i = 0; i < prompt; ++i)
      request.prompt.push_back(static_cast<std::int32_t>((i * 7919LL + s * 104729LL + 13) % vocab));
    request.max_tokens = tokens;
    request.ignore_eos = true;
    request.speculative = false;  // its guesses would be wrong, or of another model's text
    if (s == 0) request.logit_positions = {prompt - 1};  // to hash them
    request.cache_salt = fmt::format("{}.{}", first, s);
    VT_RETURN_IF_ERROR(request.sampling.set("temperature", 0));
    VT_TRY(auto stream, engine.submit(std::move(request)));
    streams.push_back(std::move(stream));
  }
  return streams;
}

// The records of the run. The last one is written just after the streams close.
Result<std::vector<StepRecord>> wait_for_records(const Engine& engine, const Streams& streams,
                                                 int prompt, std::uint64_t first) {
  std::int64_t expected = 0;
  for (const auto& stream : streams) {
    const Finish& finish = stream->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "{}", finish.error);
    expected += prompt + finish.account.usage.completion_tokens - 1;
  }
  while (true) {
    auto records = engine.steps_since(0);
    records.erase(
        std::remove_if(records.begin(), records.end(), [&](auto& r) { return r.step < first; }),
        records.end());
    std::int64_t rows = 0;
    for (const StepRecord& r : records) rows += r.prefill_tokens + r.decode_tokens;
    if (rows >= expected) return records;
    std::this_thread::yield();
  }
}

// What is added up over the steps of a run.
struct Sums {
  double prefill_ns = 0, prefill_tokens = 0, flops = 0, decode_ns = 0, decode_tokens = 0, bytes = 0;
  double busy_ns = 0, idle_ns = 0;
  std::vector<double> host, plan, launch, results, commit;  // us of each decode step
  std::vector<OpRow> ops;

  OpRow& op(const char* name) {
    for (OpRow& r : ops)
      if (r.op == name) return r;
    return ops.emplace_back(OpRow{name});
  }
  void add_prefill(const StepRecord& r) {
    prefill_ns += static_cast<double>(r.total_ns());
    prefill_tokens += r.prefill_tokens, flops += r.flops;
    for (const OpTime& t : r.ops) op(t.op).prefill += t.seconds;
  }
  void add_decode(const StepRecord& r) {
    decode_ns += static_cast<double>(r.total_ns());
    decode_tokens += r.decode_tokens;
    for (const OpTime& t : r.ops) op(t.op).decode += t.seconds;
    bytes += static_cast<double>(r.weight_bytes + r.kv_read_bytes);
    plan.push_back(1e-3 * static_cast<double>(r.plan_ns));
    launch.push_back(1e-3 * static_cast<double>(r.forward_ns));
    results.push_back(1e-3 * static_cast<double>(r.sample_ns - r.wait_ns));
    commit.push_back(1e-3 * static_cast<double>(r.commit_ns));
    host.push_back(plan.back() + launch.back() + results.back() + commit.back());
    busy_ns += static_cast<double>(r.device_ns), idle_ns += static_cast<double>(r.device_idle_ns);
  }
  void finish_ops(int sequences) {
    for (OpRow& r : ops) {
      r.prefill /= sequences;
      r.decode /= static_cast<double>(std::max<std::size_t>(1, host.size()));
    }
    std::sort(ops.begin(), ops.end(), [](const OpRow& a, const OpRow& b) {
      return a.prefill + a.decode > b.prefill + b.decode;
    });
  }
};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Result<BenchRun> bench_run(Engine& engine, int prompt, int tokens) {
  auto before = engine.steps_since(0);
  std::uint64_t first = before.empty() ? 0 : before.back().step + 1;
  VT_TRY(Streams streams, submit_all(engine, prompt, tokens, first));
  VT_TRY(auto records, wait_for_records(engine, streams, prompt, first));
  // Requests come in one after another, so that some steps have fewer sequences than others.
  int most = 0;
  for (const StepRecord& r : records)
    if (r.prefill_tokens == 0) most = std::max(most, r.decode_tokens);
  Sums sums;
  for (const StepRecord& r : records) {
    if (r.prefill_tokens > 0)
      sums.add_prefill(r);
    else if (r.decode_tokens == most)
      sums.add_decode(r);
  }
  sums.finish_ops(engine.memory().sequences);
  auto per = [](double sum, double by) { return by > 0 ? sum / by : 0; };
  return BenchRun{.prefill_tok_s = 1e9 * per(sums.prefill_tokens, sums.prefill_ns),
                  .prefill_gflop_s = per(sums.flops, sums.prefill_ns),
                  .decode_tok_s = 1e9 * per(sums.decode_tokens, sums.decode_ns),
                  .decode_gb_s = per(sums.bytes, sums.decode_ns),
                  .host_us = median(sums.host),
                  .plan_us = median(sums.plan),
                  .launch_us = median(sums.launch),
                  .results_us = median(sums.results),
                  .commit_us = median(sums.commit),
                  .idle_share = per(sums.idle_ns, sums.busy_ns + sums.idle_ns),
                  .hash = hash_logits(streams[0]->logits().at(prompt - 1)),
                  .ops = std::move(sums.ops)};
}

}  // namespace vitrine
