// An engine that is short of everything, and requests of all kinds for it.
#pragma once

#include "engine/test_engine.h"

namespace vitrine::test {

// A pool hardly larger than one sequence needs, several places, prompts that share beginnings.
inline EngineOptions cramped(int delay) {
  EngineOptions o = options(6);
  o.kv_tokens = kContext + 64;
  o.step_tokens = 40;
  o.commit_delay = delay;
  o.poison_pages = true;
  return o;
}

inline Request random_request(std::mt19937& rng) {
  int length = 1 + static_cast<int>(rng() % 120);
  Request r = request(static_cast<int>(rng() % 6), length, 1 + static_cast<int>(rng() % 50),
                      rng() % 2 ? 1.0 : 0.0);
  // The beginning is one of six; the end often differs.
  if (rng() % 2) r.prompt.back() = 3 + static_cast<int>(rng() % 40);
  r.sampling.set_seed(rng());
  r.logprobs = rng() % 2 == 0;
  r.choices = rng() % 4 == 0 ? 1 + static_cast<int>(rng() % 4) : 1;
  r.priority = static_cast<int>(rng() % 3) - 1;
  r.tenant = rng() % 2 ? "a" : "b";
  r.cache_salt = rng() % 8 == 0 ? "salt" : "";
  if (rng() % 4 == 0) r.max_backlog = 1 + static_cast<int>(rng() % 4);
  if (rng() % 3 == 0) {
    EXPECT_TRUE(r.sampling.set("repetition_penalty", 1.2).ok());
  }
  // Some search instead of drawing.
  if (rng() % 6 == 0) {
    r.beams = BeamOptions{.beams = 1 + static_cast<int>(rng() % 4)};
    r.beams->returned = r.choices = 1 + static_cast<int>(rng() % r.beams->beams);
    r.logprobs = false;
    EXPECT_TRUE(r.sampling.set("temperature", 1).ok());
    if (rng() % 2) r.stop_token_ids = {5, 17, 29, 40};
  }
  return r;
}

// The same without beam search, whose parameters are others.
inline Request random_drawing(std::mt19937& rng) {
  Request r = random_request(rng);
  r.beams.reset();
  return r;
}

// What happens next under such a load: something arrives, leaves, reads, or a step. False: a step, and there was
// nothing to do.
inline bool random_turn(Engine& engine, std::mt19937& rng,
                        std::vector<std::shared_ptr<TokenStream>>& streams) {
  switch (rng() % 8) {
    case 0:
      if (auto made = engine.submit_choices(random_request(rng)); made.ok())
        streams.insert(streams.end(), made->begin(), made->end());
      return true;
    case 1:
      if (!streams.empty() && rng() % 3 == 0) streams[rng() % streams.size()]->cancel();
      return true;
    case 2:
      for (auto& stream : streams)
        if (rng() % 4) {
          std::vector<TokenEvent> events;
          std::vector<TokenLogprob> top;
          stream->read(events, top);
        }
      return true;
    default:
      return engine.step();
  }
}

}  // namespace vitrine::test
