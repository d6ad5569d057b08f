#include "trace/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "trace/events.h"

namespace vitrine {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(VT_FIXTURES "/../../" + path);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(Schema, ThePageHasTheTable) {
  EXPECT_EQ(text_of("ui/src/data/schema.gen.ts"), schema_typescript())
      << "ninja trace_schema && src/trace/trace_schema ts";
}

TEST(Schema, TheDocumentHasTheTable) {
  const std::string text = text_of("docs/trace.md"), mark = "<!-- events.def -->\n";
  const auto at = text.find(mark);
  ASSERT_NE(at, text.npos);
  EXPECT_EQ(text.substr(at + mark.size()), schema_markdown())
      << "ninja trace_schema && src/trace/trace_schema md";
}

// HeadUnpacker (packing.h) reads what stands before them.
TEST(Schema, ListsStandLast) {
  for (const EventInfo& event : all_events())
    EXPECT_TRUE(std::is_partitioned(event.fields.begin(), event.fields.end(),
                                    [](const FieldInfo& field) { return !field.is_list(); }))
        << event.name;
}

}  // namespace
}  // namespace vitrine
