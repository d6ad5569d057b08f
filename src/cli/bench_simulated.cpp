#include "cli/bench_simulated.h"

#include <algorithm>
#include <thread>

#include "cli/bench_run.h"

namespace vitrine {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Run {
  std::vector<Tokens> outputs;  // by sequence
  // Sums over the steps in which every sequence decodes.
  double ns = 0, drawn = 0, steps = 0, busy_ns = 0, idle_ns = 0;
  double drafted = 0, right = 0, tried = 0;
  double tok_s() const { return ns > 0 ? 1e9 * drawn / ns : 0; }
};

Tokens prompt_of(const Engine& engine, int sequence, int length) {
  Tokens out;
  for (int i = 0; i < length; ++i)
    out.push_back(
        static_cast<std::int32_t>((i * 7919LL + sequence * 104729LL + 13) % engine.info().vocab));
  return out;
}

std::string scope_of(std::uint64_t first, int sequence) {
  return fmt::format("{}.{}", first, sequence);
}

// The records of the steps from `first` on, when they have drawn so many tokens: the last one is written just after
// the streams close.
std::vector<StepRecord> wait_for_records(const Engine& engine, std::uint64_t first,
                                         std::size_t drawn) {
  while (true) {
    auto records = engine.steps_since(first);
    std::size_t found = 0;
    for (const StepRecord& r : records)
      for (const StepEntry& e : r.entries) found += static_cast<std::size_t>(e.drawn);
    if (found >= drawn) return records;
    std::this_thread::yield();
  }
}

void add_up(Run& run, const std::vector<StepRecord>& records, int sequences) {
  for (const StepRecord& r : records) {
    if (r.prefill_tokens > 0 || std::ssize(r.entries) < sequences) continue;
    ++run.steps;
    run.ns += static_cast<double>(r.wall_ns);
    run.busy_ns += static_cast<double>(r.device_ns);
    run.idle_ns += static_cast<double>(r.device_idle_ns);
    run.drafted += r.drafted, run.right += r.accepted;
    for (const StepEntry& e : r.entries) {
      run.drawn += e.drawn;
      // The first wrong guess is the last that was tried.
      run.tried += std::min(e.drawn, e.tokens - 1);
    }
  }
}

std::uint64_t next_step(const Engine& engine) {
  const auto records = engine.steps_since(0);
  return records.empty() ? 0 : records.back().step + 1;
}

Result<Run> run_once(Engine& engine, std::uint64_t first, int prompt, int tokens,
                     bool speculative) {
  const int sequences = engine.memory().sequences;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int s = 0; s < sequences; ++s) {
    Request request;
    request.prompt = prompt_of(engine, s, prompt);
    request.max_tokens = tokens;
    request.ignore_eos = true;
    request.speculative = speculative;
    request.cache_salt = scope_of(first, s);
    VT_RETURN_IF_ERROR(request.sampling.set("temperature", 2));
    request.sampling.set_seed(static_cast<std::uint64_t>(s) + 1);
    VT_TRY(auto stream, engine.submit(std::move(request)));
    streams.push_back(std::move(stream));
  }
  Run run;
  std::size_t drawn = 0;
  for (auto& stream : streams) {
    Tokens& output = run.outputs.emplace_back();
    while (auto event = stream->next()) output.push_back(event->token);
    const Finish& finish = stream->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "{}", finish.error);
    drawn += output.size();
  }
  add_up(run, wait_for_records(engine, first, drawn), sequences);
  return run;
}

}  // namespace

Result<SpeculationFigures> bench_simulated(Engine& engine, KnownTexts& texts, int prompt,
                                           int tokens, int pairs) {
  std::vector<double> off_tok_s, on_tok_s, ratios;
  Run all;
  double same = 0, output = 0;
  for (int pair = -1; pair < pairs; ++pair) {  // the first one warms up
    VT_TRY(Run off, run_once(engine, next_step(engine), prompt, tokens, false));
    const std::uint64_t first = next_step(engine);
    texts.clear();
    for (int s = 0; s < std::ssize(off.outputs); ++s) {
      Tokens text = prompt_of(engine, s, prompt);
      text.insert(text.end(), off.outputs[s].begin(), off.outputs[s].end());
      texts.set(scope_of(first, s), std::move(text));
    }
    VT_TRY(Run on, run_once(engine, first, prompt, tokens, true));
    if (pair < 0) continue;
    off_tok_s.push_back(off.tok_s()), on_tok_s.push_back(on.tok_s());
    ratios.push_back(off.tok_s() > 0 ? on.tok_s() / off.tok_s() : 0);
    all.drawn += on.drawn, all.steps += on.steps;
    all.busy_ns += on.busy_ns, all.idle_ns += on.idle_ns;
    all.drafted += on.drafted, all.right += on.right, all.tried += on.tried;
    for (std::size_t s = 0; s < on.outputs.size(); ++s) {
      const Tokens &a = off.outputs[s], &b = on.outputs[s];
      for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) same += a[i] == b[i];
      output += static_cast<double>(b.size());
    }
  }
  const auto per = [](double sum, double by) { return by > 0 ? sum / by : 0; };
  const double steps = all.steps * engine.memory().sequences;
  return SpeculationFigures{.off_tok_s = median(off_tok_s),
                            .on_tok_s = median(on_tok_s),
                            .ratio = median(ratios),
                            .guesses_per_step = per(all.drafted, steps),
                            .tokens_per_step = per(all.drawn, steps),
                            .right = per(all.right, all.tried),
                            .same_tokens = per(same, output),
                            .idle_share = per(all.idle_ns, all.busy_ns + all.idle_ns)};
}

}  // namespace vitrine
