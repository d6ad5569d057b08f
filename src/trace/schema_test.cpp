#include "trace/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

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

}  // namespace
}  // namespace vitrine
