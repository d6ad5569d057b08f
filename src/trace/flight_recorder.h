// The last events of a log, on standard error as lines of a `.vtr` file when the process aborts.
#pragma once

#include <string>
#include <vector>

#include "base/last_words.h"
#include "trace/step_log.h"

namespace vitrine {

class FlightRecorder final : public LastWords {
 public:
  static constexpr std::size_t kMostEvents = 64, kMostPacked = 128 << 10;  // what it tells at most

  // Where the log is off it does nothing.
  FlightRecorder(const StepLog& log, const std::string& epoch);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;

  void say() noexcept override;

 private:
  const StepLog& log_;
  // There is room for an event of kMostPacked bytes.
  std::vector<std::uint64_t> words_;
  std::string line_;
};

}  // namespace vitrine
