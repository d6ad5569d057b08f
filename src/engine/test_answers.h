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

// One request at a time, each choice by itself, nothing reused.
inline std::vector<Answer> alone(const Request& r, bool window) {
  static std::unique_ptr<Engine> engines[2][2];
  std::unique_ptr<Engine>& engine = engines[window][r.beams.has_value()];
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
