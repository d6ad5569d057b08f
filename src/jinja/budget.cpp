#include "jinja/budget.h"

namespace vitrine::jinja {

Budget::Budget(const Limits& limits)
    : limits_(limits),
      steps_(limits.steps),
      deadline_(std::chrono::steady_clock::now() + limits.time),
      before_(std::exchange(current_, this)) {}

void Budget::fail_bytes() const {
  throw Failure{ErrorCode::kTooLarge,
                fmt::format("the template makes too much: texts of at most {} bytes and {} bytes "
                            "of texts and values in all are allowed",
                            limits_.output_bytes, limits_.created_bytes)};
}

void Budget::fail_steps() const {
  throw Failure{ErrorCode::kTooLarge,
                fmt::format("the template takes more than {} steps", limits_.steps)};
}

void Budget::fail_depth() const {
  throw Failure{ErrorCode::kTooLarge,
                fmt::format("the template goes more than {} levels deep", limits_.depth)};
}

void Budget::check_clock() {
  since_clock_ = 0;
  if (std::chrono::steady_clock::now() > deadline_)
    throw Failure{ErrorCode::kTooLarge,
                  fmt::format("the template takes more than {} ms", limits_.time.count())};
}

}  // namespace vitrine::jinja
