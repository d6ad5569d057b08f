// The requests that `vitrine verify` compares: of all kinds, and each a pure function of (room, seed, number), so
// that one of them can be asked for again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "grammar/compiler.h"

namespace vitrine::verify {

inline constexpr int kMostChoices = 3;  // of a request

inline constexpr int kWithLogits = 64;  // of the first so many requests, rows of logits are kept

// What cases are made of and have to fit into.
struct CaseRoom {
  int vocab = 0;
  int context = 0;                      // of prompt and output together
  int max_tokens = 0;                   // of output, at most
  int page_size = 0;                    // prompts end around the borders of pages
  int chunk = 0;                        // and of chunks
  std::vector<std::int32_t> text = {};  // of the language that the model knows; may be empty
  std::vector<std::shared_ptr<const Constraint>> constraints = {};  // may be empty
};
// The least context that cases fit into.
int least_context(const CaseRoom& room);

struct Case {
  int number = 0;
  std::string what;  // in words
  Request request;   // with a seed
};
// A text to make prompts of, and forms for answers, for models with a tokenizer.
const char* sample_text();
std::vector<ConstraintSpec> sample_constraints();
Case make_case(const CaseRoom& room, std::uint64_t seed, int number);

}  // namespace vitrine::verify
