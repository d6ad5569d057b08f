// The events of events.def in C++: their kinds, a table of their fields, and visitors over their members. A
// visitor is a template, so whatever has the members of an event can be packed as one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trace/step_record.h"

namespace vitrine {

enum class FieldType : std::uint8_t {
  kU64,
  kI64,
  kF64,
  kI32,
  kU16,
  kFlag,
  kText,   // of any length
  kName,   // a string of the program, packed as its address
  kPhase,  // this and the next: one of a few words
  kWait,
  kPageOp,
  kGuessSource,
};
// The words of such a type, by value; empty for others.
std::span<const char* const> words_of(FieldType type);

struct FieldInfo {
  const char* name;  // in JSON
  FieldType type;
  const char* unit;
  const char* from;  // "measured", "computed"
  const char* help;
  std::span<const FieldInfo> columns = {};  // of a list
  bool is_list() const { return !columns.empty(); }
};

enum class EventKind : std::uint8_t {
#define VT_EVENT(event, name, when) k##event,
#include "trace/events.def"
};

struct EventInfo {
  const char* name;
  const char* when;
  std::span<const FieldInfo> fields;
};
std::span<const EventInfo> all_events();  // by EventKind
inline const EventInfo& event_info(EventKind kind) {
  return all_events()[static_cast<std::size_t>(kind)];
}

template <FieldType kType>
struct FieldTag {};
template <typename Row>
struct ListTag {};

// PageRow::visit(row, f) and StepFields::visit(event, f) call f(FieldTag<type>, member) or
// f(ListTag<Row>, member) for every member in order.
#define VT_ROW(row)                   \
  struct row {                        \
    template <typename E, typename F> \
    static void visit(E& e, F&& f) {
#define VT_ROW_END(row) \
  }                     \
  }                     \
  ;
#define VT_EVENT(event, name, when)                         \
  struct event##Fields {                                    \
    static constexpr EventKind kKind = EventKind::k##event; \
    template <typename E, typename F>                       \
    static void visit(E& e, F&& f) {
#define VT_EVENT_END(event) \
  }                         \
  }                         \
  ;
#define VT_FIELD(member, type, name, unit, from, help) f(FieldTag<FieldType::type>{}, e.member);
#define VT_LIST(member, row, name, help) f(ListTag<row>{}, e.member);
#include "trace/events.def"

// ---- The events. Texts and lists are their owner's to keep.

enum class PageOp : std::uint8_t { kTake, kAdopt, kShare, kCopy, kName, kRelease, kEvict };

struct PageChange {
  PageOp op = PageOp::kTake;
  int group = 0;
  std::int32_t page = 0;
  std::uint64_t sequence = 0;
  int index = 0, holders = 0;
};

struct Admitted {
  std::uint64_t sequence = 0;
  int slot = 0, cached = 0, computed = 0;
};

struct Preempted {
  std::uint64_t sequence = 0, by = 0;
  int pages = 0;
  int prefill_end = 0;
};

struct ArriveEvent {
  struct Stamps {
    std::int64_t received = 0, body = 0, parsed = 0, templated = 0, tokenized = 0, compiled = 0,
                 submitted = 0;
  };
  std::int64_t at_ns = 0;
  std::uint64_t sequence = 0, parent = 0, beam_of = 0;
  std::string_view label, tenant;
  int choice = 0, prompt = 0, begun = 0, priority = 0;
  Stamps stamps;
};

struct PlanEvent {
  std::int64_t at_ns = 0;
  std::uint64_t step = 0;
  bool lost = false;
  Blocked blocked;
  std::vector<Preempted> preempt;
  std::vector<Admitted> admit;
  std::vector<PageChange> pages;
};

struct StepEvent {
  StepRecord record;
  bool lost = false;
  std::vector<PageChange> pages;
};

struct EndEvent {
  std::int64_t at_ns = 0;
  std::uint64_t sequence = 0;
  const char* reason = "";
  int prompt = 0, output = 0, cached = 0, recomputed = 0, preemptions = 0, steps = 0;
};

struct WrittenEvent {
  std::int64_t at_ns = 0;
  std::uint64_t sequence = 0;
  std::int64_t first_write_ns = 0, last_write_ns = 0, bytes_out = 0;
};

}  // namespace vitrine
