// A request as it is looked up by its name: what runs, waits, has ended or was refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/answer/life_json.h"
#include "server/api.h"

namespace vitrine {

struct FoundRequest {
  Account account;
  std::optional<SequenceStats> live;  // none: it is over
  std::vector<LifePart> life;
};

struct FoundRequests {
  std::vector<FoundRequest> list;  // refused ones, then those that ended, then the others
  Names names;
};

// Every sequence with that label or, for operators, number (numbers count everybody's requests), as far as
// `http` may see it.
// Every step in which they had rows, as far as it is kept.
struct FoundSteps {
  struct Row {
    const OwnStep* step;
    const StepEntry* entry;  // of it
  };
  std::vector<OwnStep> steps;
  std::vector<std::vector<Row>> of;  // by place in FoundRequests::list; oldest first
};

FoundRequests find_requests(const Api& api, std::string_view name, const HttpRequest& http);
ApiError no_such_request(std::string_view name);

// Up to `most` rows, the newest.
FoundSteps steps_of(const Engine& engine, const FoundRequests& found, std::size_t most = SIZE_MAX);
// How many there are, without looking, and the bytes that these take; and those of what was found.
std::size_t rows_of(const FoundRequests& found);
std::size_t bytes_of_steps(const FoundRequests& found);
std::size_t bytes_of(const FoundRequests& found);

}  // namespace vitrine
