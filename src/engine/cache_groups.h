// What a prefix cache is made of, by a memory plan.
#pragma once

#include <vector>

#include "engine/memory_plan.h"
#include "kv/prefix_cache.h"

namespace vitrine {

inline std::vector<PrefixCache::Group> cache_groups(const MemoryPlan& plan) {
  std::vector<PrefixCache::Group> groups;
  for (const CacheGroup& g : plan.groups) groups.push_back({g.pages, g.spec.window});
  return groups;
}

}  // namespace vitrine
