// From a request to a sequence: what is refused, and what a sequence starts with. Constant after
// construction, so that any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/info.h"
#include "engine/memory_plan.h"
#include "engine/sequence.h"
#include "kv/prefix_key.h"

namespace vitrine {

class Admission {
 public:
  // All but `eos_ids` must outlive it.
  Admission(const MemoryPlan& plan, const EngineInfo& info, const PrefixHasher& hasher,
            std::vector<std::int32_t> eos_ids);

  // The error names the field, what was found and what is allowed.
  Status check(const Request& request) const;
  // The first choice of a request that was checked, with the further ones as its forks.
  std::unique_ptr<Sequence> make(Request request) const;

 private:
  Status check_begun(const Request& request) const;
  Status check_beams(const Request& request) const;
  static void make_beams(Sequence& first);
  std::unique_ptr<Sequence> make_choice(Request request, std::vector<std::int32_t> prompt,
                                        int choice, std::uint64_t seed) const;
  void hash_prompt(Sequence& s) const;

  const MemoryPlan& plan_;
  const EngineInfo& info_;
  const PrefixHasher& hasher_;
  const std::vector<std::int32_t> eos_ids_;
};

}  // namespace vitrine
