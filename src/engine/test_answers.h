// The answers that requests get, to compare with those that they get alone.
#pragma once

#include <bit>

#include "engine/test_engine.h"

namespace vitrine::test {

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (float v : values) out.push_back(std::bit_cast<std::uint32_t>(v));
  return out;
}

struct Answer {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Answer& other) const {
    return tokens == other.tokens && bits_of(logprobs) == bits_of(other.logprobs);
  }
};

inline Answer answer_of(TokenStream& stream) {
  Answer out;
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  stream.read(events, top);
  for (const TokenEvent& e : events)
    out.tokens.push_back(e.token), out.logprobs.push_back(e.logprob);
  return out;
}

// Engines that stay for all tests, and go before main() ends: a device's driver does not outlive it.
class SharedEngines : public testing::Environment {
 public:
  static std::unique_ptr<Engine>& get(bool window, bool beams) {
    static auto* const shared =
        static_cast<SharedEngines*>(testing::AddGlobalTestEnvironment(new SharedEngines));
    return shared->engines_[2 * beams + window];
  }
  void TearDown() override {
    for (auto& engine : engines_) engine.reset();
  }

 private:
  std::unique_ptr<Engine> engines_[4];
};

// One request at a time, each choice by itself, nothing reused.
inline std::vector<Answer> alone(const Request& r, bool window) {
  std::unique_ptr<Engine>& engine = SharedEngines::get(window, r.beams.has_value());
  if (!engine) {
    EngineOptions o = options(r.beams ? 4 : 1);  // beams run side by side
    o.prefix_cache = false;
    engine = make_engine(o, window);
  }
  Request plain = r;
  plain.max_backlog = 0;
  auto streams = *engine->submit_choices(plain);
  drain(*engine);
  std::vector<Answer> out;
  for (auto& s : streams) out.push_back(answer_of(*s));
  return out;
}

}  // namespace vitrine::test
