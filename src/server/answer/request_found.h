// A request as it is looked up by its name: what runs, waits, has ended or was refused.
#pragma once

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
FoundRequests find_requests(const Api& api, std::string_view name, const HttpRequest& http);
ApiError no_such_request(std::string_view name);

}  // namespace vitrine
