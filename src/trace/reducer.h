// The state of an engine, made of a snapshot and the events after it: the twin of the page's ui/src/data/reduce.ts.
// What it makes of a snapshot and the events up to a later one is the later one (engine/trace_test.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trace/step_log.h"

namespace vitrine {

class TraceState {
 public:
  enum class Phase : std::uint8_t { kWaiting, kPreempted, kPrefill, kDecode };
  struct Sequence {
    Phase phase = Phase::kWaiting;
    int slot = -1;  // -1: it has no place
    int prompt = 0;
    int prefill_end = 0;  // positions to compute before the next token is drawn
    int cached = 0, computed = 0;
    int output = 0;  // tokens drawn
    int preemptions = 0;
    bool operator==(const Sequence&) const = default;
  };
  struct Page {
    bool named = false;  // it has a key: without holders it is cached, not free
    int holders = 0;
    int fill = 0;  // positions that hold a token
    bool operator==(const Page&) const = default;
  };
  struct Group {
    int page_size = 0;
    std::vector<Page> pages;
    bool operator==(const Group&) const = default;
  };
  // The event after the last one.
  void apply(const PackedEvent& event);

  bool operator==(const TraceState&) const = default;

  std::uint64_t seq = 0;  // of the last event
  std::map<std::uint64_t, Sequence> sequences;
  std::vector<Group> groups;
  // By sequence and group: its pages by position; -1: a window has moved on. Only those that hold some.
  std::map<std::uint64_t, std::vector<std::vector<std::int32_t>>> tables;
  Blocked blocked;
  bool lost = false;  // there were changes that no event tells: it is no longer the engine's state

 private:
  void change(std::span<const PageChange> pages);
  void release(const PageChange& change);
  void refill(int group, std::int32_t page, int index);
  void row(const StepEntry& entry);
};

}  // namespace vitrine
