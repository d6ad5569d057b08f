#include "trace/events.h"

namespace vitrine {
namespace {

#define VT_ROW(row) constexpr FieldInfo k##row[] = {
#define VT_ROW_END(row) \
  }                     \
  ;
#define VT_EVENT(event, name, when) constexpr FieldInfo k##event##Fields[] = {
#define VT_EVENT_END(event) \
  }                         \
  ;
#define VT_FIELD(member, type, name, unit, from, help) {name, FieldType::type, unit, #from, help},
#define VT_LIST(member, row, name, help) {name, FieldType::kU64, "list", "measured", help, k##row},
#include "trace/events.def"

constexpr EventInfo kEvents[] = {
#define VT_EVENT(event, name, when) {name, when, k##event##Fields},
#include "trace/events.def"
};

constexpr const char* kPhases[] = {"prefill", "decode"};
constexpr const char* kWaits[] = {"none", "seats", "pages", "policy"};
constexpr const char* kPageOps[] = {"take", "adopt", "share", "copy", "name", "release", "evict"};

constexpr const char* kGuessSourceNames[] = {
    guess_source_name(GuessSource::kNgram), guess_source_name(GuessSource::kSuffix),
    guess_source_name(GuessSource::kDraft), guess_source_name(GuessSource::kPrediction)};

}  // namespace

std::span<const EventInfo> all_events() { return kEvents; }

std::span<const char* const> words_of(FieldType type) {
  switch (type) {
    case FieldType::kPhase:
      return kPhases;
    case FieldType::kWait:
      return kWaits;
    case FieldType::kPageOp:
      return kPageOps;
    case FieldType::kGuessSource:
      return kGuessSourceNames;
    default:
      return {};
  }
}

}  // namespace vitrine
