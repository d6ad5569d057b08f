#include "load/plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

namespace vitrine::load {
namespace {

enum Purpose : std::uint64_t { kArrival = 1, kPromptLength, kOutputLength, kPrompt, kPrefix };

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

json::object to_json(const LengthSpec& spec) {
  return {{"mean", spec.mean}, {"cv", spec.cv}, {"max", spec.limit()}};
}

}  // namespace

int LengthSpec::limit() const {
  if (max > 0) return max;
  return static_cast<int>(std::min(8 * std::ceil(mean), double{1 << 30}));
}

json::object to_json(const LoadSpec& spec) {
  return {{"loop", spec.rate > 0 ? "open" : "closed"},
          {"rate", spec.rate},
          {"concurrency", spec.rate > 0 ? 0 : spec.concurrency},
          {"requests", spec.requests},
          {"duration_s", spec.duration_s},
          {"warmup", spec.warmup},
          {"prompt", to_json(spec.prompt)},
          {"output", to_json(spec.output)},
          {"shared_prefix", spec.shared_prefix},
          {"slow_readers", spec.slow_readers},
          {"seed", spec.seed},
          {"vocab", spec.vocab}};
}

Random::Random(std::uint64_t seed, std::int64_t index, std::uint64_t purpose)
    : state_(mix(mix(mix(seed + kGolden) + static_cast<std::uint64_t>(index)) + purpose)) {}

std::uint64_t Random::bits() { return mix(state_ += kGolden); }

double Random::uniform() { return (static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52; }

double Random::normal() {
  double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double Random::exponential() { return -std::log(uniform()); }

int draw_length(const LengthSpec& spec, Random& random) {
  double length = spec.mean;
  if (spec.cv > 0) {
    double variance = std::log1p(spec.cv * spec.cv);  // of the logarithm
    length = spec.mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  }
  return static_cast<int>(std::clamp(std::round(length), 1.0, double(spec.limit())));
}

PlannedRequest plan_request(const LoadSpec& spec, std::int64_t index) {
  PlannedRequest out;
  if (spec.rate > 0) out.gap_s = Random(spec.seed, index, kArrival).exponential() / spec.rate;
  Random prompt_length(spec.seed, index, kPromptLength);
  Random output_length(spec.seed, index, kOutputLength);
  int prompt_tokens = draw_length(spec.prompt, prompt_length);
  out.output_tokens = draw_length(spec.output, output_length);
  auto shared = static_cast<int>(std::lround(prompt_tokens * spec.shared_prefix));
  Random prefix(spec.seed, 0, kPrefix);
  Random own(spec.seed, index, kPrompt);
  auto vocab = static_cast<std::uint64_t>(std::max(spec.vocab, 1));
  out.prompt.reserve(static_cast<std::size_t>(prompt_tokens));
  for (int i = 0; i < prompt_tokens; ++i)
    out.prompt.push_back(static_cast<std::int32_t>((i < shared ? prefix : own).bits() % vocab));
  return out;
}

std::string request_body(const PlannedRequest& request, const std::string& model) {
  std::string out = "{";
  if (!model.empty()) out += "\"model\":" + json::serialize(json::string(model)) + ",";
  fmt::format_to(std::back_inserter(out),
                 "\"prompt\":[{}],\"max_tokens\":{},\"temperature\":0,\"ignore_eos\":true,"
                 "\"stream\":true,\"stream_options\":{{\"include_usage\":true}}",
                 fmt::join(request.prompt, ","), request.output_tokens);
  if (request.logprobs > 0) out += fmt::format(",\"logprobs\":{}", request.logprobs);
  out += "}";
  return out;
}

}  // namespace vitrine::load
