#include "trace/event_json.h"

#include <gtest/gtest.h>

#include <set>

#include "base/json.h"
#include "trace/packing.h"

namespace vitrine {
namespace {

template <typename Fields, typename Event>
json::object told(const Event& event) {
  StepLog log(1 << 20);
  Packer packer(log.draft());
  Fields::visit(event, packer);
  log.append(Fields::kKind, packer.size());
  StepLog::Place place;
  std::vector<std::uint64_t> words;
  log.read(place, words, SIZE_MAX);
  std::string line;
  StepLog::each(words, [&](const PackedEvent& packed) { append_event_line(line, packed); });
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  return json::parse(line).get_object();
}

TEST(EventJson, HasEveryFieldOfTheTableInItsPlace) {
  StepEvent event;
  StepRecord& r = event.record;
  r.step = 7, r.start_ns = 1'234'567'890'123, r.flops = 1.5e15, r.flops_per_byte = 20.25;
  r.prefill_tokens = 3, r.head_rows = -1, r.beam_rows = 2;
  r.beams.push_back({9, 8, 19, 20, 4, -1.5});
  r.blocked = {Wait::kPages, 12, 5, 4};
  r.entries.push_back({.sequence = 9,
                       .phase = Phase::kPrefill,
                       .first = 16,
                       .tokens = 3,
                       .sampled = true,
                       .again = 1,
                       .slot = 2,
                       .flops = 10,
                       .kv_read_bytes = 0.5,
                       .kv_write_bytes = 3,
                       .share_ns = 77,
                       .kept = 3,
                       .drawn = 1});
  r.ops.push_back({"matmul", 4, 0.25});
  r.by_source.of(GuessSource::kDraft).drafted = 5;
  r.by_source.of(GuessSource::kPrediction).lost_ns = -9;
  r.by_source.of(GuessSource::kDraft).drafts = 2;
  event.pages.push_back({PageOp::kCopy, 1, 40, 9, 2, 1});
  event.pages.push_back({PageOp::kEvict, 0, 41, 0, 0, 0});
  const json::object o = told<StepFields>(event);
  EXPECT_EQ(o.at("event"), "step");
  EXPECT_EQ(o.at("seq"), 1);
  EXPECT_EQ(o.at("n"), 7);
  EXPECT_EQ(o.at("start_ns"), 1'234'567'890'123);
  EXPECT_EQ(o.at("flops").to_number<double>(), 1.5e15);
  EXPECT_EQ(o.at("flops_per_byte").to_number<double>(), 20.25);
  EXPECT_EQ(o.at("rows"),
            json::parse(R"({"prefill":3,"decode":0,"padding":0,"head":-1,"beams":2})"));
  EXPECT_EQ(o.at("blocked"), json::parse(R"({"reason":"pages","id":12,"needed":5,"available":4})"));
  EXPECT_EQ(o.at("entries"), json::parse(R"([[9,2,"prefill",16,3,true,10,0.5,3,77,1,3,1]])"));
  EXPECT_EQ(o.at("guesses"), json::parse(R"([["draft",2,5,0,0,0],["prediction",0,0,0,0,-9]])"));
  EXPECT_EQ(o.at("beams"), json::parse("[[9,8,19,20,4,-1.5]]"));
  EXPECT_EQ(o.at("ops"), json::parse(R"([["matmul",4,0.25]])"));
  EXPECT_EQ(o.at("pages"), json::parse(R"([["copy",1,40,9,2,1],["evict",0,41,0,0,0]])"));
  EXPECT_EQ(o.at("lost"), false);
  // As many members as the table has, objects taken apart.
  std::size_t members = 0;
  for (const auto& [key, value] : o) members += value.is_object() ? value.get_object().size() : 1;
  EXPECT_EQ(members, event_info(EventKind::kStep).fields.size() + 2) << "event and seq";
}

TEST(EventJson, TextsOfCallersAreWrittenAsText) {
  const std::string label = "a\"\n\xff\\" + std::string(1000, 'x');
  ArriveEvent event;
  event.label = label, event.tenant = "ann";
  const json::object o = told<ArriveFields>(event);
  const auto& text = o.at("label").as_string();
  EXPECT_TRUE(std::string_view(text).starts_with("a\"\n\xef\xbf\xbd\\xxx"));
  EXPECT_LE(text.size(), kMostText + 3);
  EXPECT_EQ(o.at("tenant"), "ann");
  EXPECT_EQ(o.at("stamps").as_object().size(), 7u);
}

TEST(EventJson, WhatIsUnpackedIsWhatWasPacked) {
  PlanEvent event;
  event.at_ns = -5, event.step = UINT64_MAX, event.lost = true;
  event.blocked = {Wait::kSeats, 8, 0, 0};
  event.preempt.push_back({1, 2, 3});
  event.admit.push_back({4, 5, 6, 7});
  for (int i = 0; i < 7; ++i) event.pages.push_back({static_cast<PageOp>(i), 2, i, 9, i, 65535});
  std::vector<std::byte> bytes(4096);
  Packer packer(bytes);
  PlanFields::visit(event, packer);
  const auto found = unpacked<PlanFields, PlanEvent>(bytes);
  EXPECT_EQ(found.at_ns, -5);
  EXPECT_EQ(found.step, UINT64_MAX);
  EXPECT_TRUE(found.lost);
  EXPECT_EQ(found.blocked, event.blocked);
  ASSERT_EQ(found.pages.size(), 7u);
  EXPECT_EQ(found.pages[6].op, PageOp::kEvict);
  EXPECT_EQ(found.pages[3].holders, 65535);
  EXPECT_EQ(found.preempt[0].pages, 3);
  EXPECT_EQ(found.admit[0].computed, 7);
}

TEST(EventTable, NamesAreDifferentAndSayWhereTheyAreFrom) {
  std::set<std::string> names;
  for (const EventInfo& event : all_events()) {
    EXPECT_TRUE(names.insert(event.name).second);
    std::set<std::string> fields;
    auto check = [&](const FieldInfo& field) {
      EXPECT_TRUE(std::string_view(field.from) == "measured" ||
                  std::string_view(field.from) == "computed")
          << field.name;
      EXPECT_GT(std::string_view(field.help).size(), 3u) << field.name;
    };
    for (const FieldInfo& field : event.fields) {
      EXPECT_TRUE(fields.insert(field.name).second) << event.name << " " << field.name;
      check(field);
      for (const FieldInfo& column : field.columns) check(column);
    }
  }
  EXPECT_EQ(names.size(), 5u);
}

}  // namespace
}  // namespace vitrine
