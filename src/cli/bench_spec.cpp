#include "cli/bench_spec.h"

#include <algorithm>
#include <chrono>

#include "cli/bench_run.h"

namespace vitrine {
namespace {

struct Run {
  double seconds = 0;
  std::vector<std::int32_t> tokens;  // of all sequences
  std::int64_t drafts = 0, drafted = 0, accepted = 0, steps = 0;
};

// `turn`: makes the prompts of a pair new to the prefix cache, and its noise new.
Result<Run> run_once(Engine& engine, const SpecBench& bench, int turn, bool speculative) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < bench.sequences; ++i) {
    Request request;
    request.prompt = bench.prompts[static_cast<std::size_t>(i) % bench.prompts.size()];
    request.max_tokens = bench.tokens;
    request.ignore_eos = true;
    request.sampling = bench.sampling;
    request.sampling.set_seed(static_cast<std::uint64_t>(1000 * turn + i));
    request.cache_salt = fmt::format("{}.{}.{}", turn, i, speculative);
    request.speculative = speculative;
    VT_TRY(auto stream, engine.submit(std::move(request)));
    streams.push_back(std::move(stream));
  }
  Run out;
  for (auto& stream : streams) {
    while (auto event = stream->next()) out.tokens.push_back(event->token);
    const Finish& finish = stream->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "{}", finish.error);
    const Account& a = finish.account;
    out.drafts += a.drafts, out.drafted += a.drafted, out.accepted += a.accepted;
    out.steps += a.timings.decode_steps;
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Of the ratios of the pairs.
struct Ratios {
  double median = 0, least = 0, most = 0;
};

Ratios ratios(const SpecReport& r) {
  std::vector<double> all;
  for (const SpecReport::Pair& pair : r.pairs) all.push_back(pair.ratio());
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  return {median(all), *least, *most};
}

double tokens_per_second(const SpecReport& r, double SpecReport::Pair::*seconds) {
  std::vector<double> all;
  for (const SpecReport::Pair& pair : r.pairs)
    all.push_back(static_cast<double>(r.tokens) / (pair.*seconds));
  return median(all);
}

}  // namespace

Result<SpecReport> bench_spec(Engine& engine, const SpecBench& bench) {
  SpecReport out;
  // What steps take is measured while they run; the first pair does that, and is not counted.
  Metrics before;
  for (int turn = 0; turn <= bench.pairs; ++turn) {
    if (turn == 1) before = engine.metrics();
    // Who goes first changes from pair to pair.
    const bool first = turn % 2 == 0;
    VT_TRY(Run one, run_once(engine, bench, turn, first));
    VT_TRY(Run two, run_once(engine, bench, turn, !first));
    const Run &with = first ? one : two, &without = first ? two : one;
    if (engine.info().exact && with.tokens != without.tokens)
      return make_error(ErrorCode::kInvalid,
                        "with guesses the tokens are others than without, in pair {}", turn);
    if (turn == 0) continue;
    out.pairs.push_back({without.seconds, with.seconds});
    out.tokens = static_cast<std::int64_t>(with.tokens.size());
    out.drafts += with.drafts, out.drafted += with.drafted, out.accepted += with.accepted;
    out.decode_steps += with.steps, out.decode_steps_without += without.steps;
  }
  const Metrics after = engine.metrics();
  for (std::size_t i = 0; i < after.accepted_by_place.size(); ++i)
    out.accepted_by_place.push_back(
        static_cast<std::int64_t>(after.accepted_by_place[i] - before.accepted_by_place[i]));
  while (!out.accepted_by_place.empty() && out.accepted_by_place.back() == 0)
    out.accepted_by_place.pop_back();
  for (int i = 0; i < kGuessSources; ++i)
    out.draft_s += after.by_source[i].seconds - before.by_source[i].seconds;
  return out;
}

json::object spec_json(const Engine& engine, const SpecBench& bench, const SpecReport& r) {
  json::array pairs;
  for (const SpecReport::Pair& pair : r.pairs)
    pairs.push_back(json::object{
        {"without_s", pair.without_s}, {"with_s", pair.with_s}, {"ratio", pair.ratio()}});
  const Ratios all = ratios(r);
  return {
      {"backend", engine.info().backend_description},
      {"spec", spec_mode_name(engine.options().spec)},
      {"spec_tokens", engine.options().spec_tokens},
      {"temperature", bench.sampling.get("temperature")},
      {"sequences", bench.sequences},
      {"tokens", r.tokens},
      {"ratio", all.median},
      {"least_ratio", all.least},
      {"most_ratio", all.most},
      {"tok_s_without", tokens_per_second(r, &SpecReport::Pair::without_s)},
      {"tok_s_with", tokens_per_second(r, &SpecReport::Pair::with_s)},
      {"drafted", r.drafted},
      {"accepted", r.accepted},
      {"acceptance", share(r.accepted, r.drafted)},
      {"mean_acceptance_length", 1 + share(r.accepted, r.drafts)},
      {"accepted_by_place", json::array(r.accepted_by_place.begin(), r.accepted_by_place.end())},
      {"steps_without", r.decode_steps_without},
      {"steps_with", r.decode_steps},
      {"draft_s", r.draft_s},
      {"pairs", std::move(pairs)}};
}

void print_spec(const Engine& engine, const SpecBench& bench, const SpecReport& r) {
  const Ratios all = ratios(r);
  fmt::print(
      "{}\n--spec {}, temperature {}, {} sequence{} of {} tokens, {} pairs of runs in turns; the "
      "same "
      "tokens in both\n\n",
      engine.info().backend_description, spec_mode_name(engine.options().spec),
      bench.sampling.get("temperature"), bench.sequences, bench.sequences == 1 ? "" : "s",
      bench.tokens, r.pairs.size());
  fmt::print("without    {:>10.1f} tok/s\nwith       {:>10.1f} tok/s\n",
             tokens_per_second(r, &SpecReport::Pair::without_s),
             tokens_per_second(r, &SpecReport::Pair::with_s));
  fmt::print("ratio      {:>10.3f}  (median of pairs, {:.3f} to {:.3f})\n", all.median, all.least,
             all.most);
  fmt::print(
      "acceptance {:>10.3f}  ({} of {} guesses; {:.2f} tokens a step with guesses, {} of {} steps "
      "left)\n",
      share(r.accepted, r.drafted), r.accepted, r.drafted, 1 + share(r.accepted, r.drafts),
      r.decode_steps, r.decode_steps_without);
}

}  // namespace vitrine
