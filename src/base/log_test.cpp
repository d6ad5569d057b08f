#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "base/json.h"

namespace vitrine {
namespace {

using ::testing::HasSubstr;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { set_log_level(LogLevel::kInfo); }
  // What `write` logs, line by line.
  template <typename F>
  static std::vector<json::object> lines(F write) {
    ::testing::internal::CaptureStderr();
    write();
    std::istringstream text(::testing::internal::GetCapturedStderr());
    std::vector<json::object> out;
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(line.size() + 1, 4096u);
      auto parsed = parse_json(line, "log");
      EXPECT_TRUE(parsed.ok()) << line;
      if (parsed.ok()) out.push_back(parsed->as_object());
    }
    return out;
  }
};

TEST_F(LogTest, OneLineOfJsonForEachEvent) {
  auto logged = lines([] {
    LogLine(LogLevel::kInfo, "odd\n")
        .field("text", "\x01\x7f\xff\"\\")
        .field("n", std::int64_t{-1})
        .field("x", 0.5)
        .field("nan", NAN);
    LogLine(LogLevel::kError, "next");
  });
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_EQ(logged[0].at("event"), "odd\n");
  EXPECT_EQ(logged[0].at("level"), "info");
  EXPECT_EQ(logged[0].at("text").as_string(), "\x01\x7f\xef\xbf\xbd\"\\");
  EXPECT_EQ(logged[0].at("n"), -1);
  EXPECT_EQ(logged[0].at("x"), 0.5);
  EXPECT_EQ(logged[0].at("nan"), "not finite");
  EXPECT_EQ(logged[0].at("time").as_string().size(), 24u);
  EXPECT_EQ(logged[1].at("level"), "error");
}

TEST_F(LogTest, LinesBelowTheLevelAreNotWritten) {
  auto logged = lines([] {
    LogLine(LogLevel::kDebug, "no").field("n", std::int64_t{1});
    set_log_level(LogLevel::kError);
    LogLine(LogLevel::kWarn, "no").field("text", "x").field("x", 1.0);
    LogLine(LogLevel::kError, "yes");
    set_log_level(LogLevel::kDebug);
    LogLine(LogLevel::kDebug, "yes");
  });
  ASSERT_EQ(logged.size(), 2u);
  for (const auto& line : logged) EXPECT_EQ(line.at("event"), "yes");
}

TEST_F(LogTest, LongValuesAreCutAndLongLinesLoseFields) {
  auto logged = lines([] {
    LogLine line(LogLevel::kInfo, "long");
    for (const char* name : {"a", "b", "c", "d"}) line.field(name, std::string(10'000, 'x'));
    line.field("n", std::int64_t{7});
  });
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0].at("a").as_string().size(), 1024u);
  EXPECT_TRUE(logged[0].contains("c"));
  EXPECT_FALSE(logged[0].contains("d"));
  EXPECT_EQ(logged[0].at("n"), 7);
}

TEST_F(LogTest, NeverWaitsForItsReader) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  int saved = ::dup(STDERR_FILENO);
  ::dup2(pipe[1], STDERR_FILENO);
  for (int i = 0; i < 1000; ++i) LogLine(LogLevel::kError, "x").field("y", std::string(900, 'y'));
  std::string text(1 << 20, '\0');
  text.resize(static_cast<std::size_t>(::read(pipe[0], text.data(), text.size())));
  LogLine(LogLevel::kError, "after");
  std::string more(4096, '\0');
  more.resize(static_cast<std::size_t>(::read(pipe[0], more.data(), more.size())));
  ::dup2(saved, STDERR_FILENO);
  for (int fd : {saved, pipe[0], pipe[1]}) ::close(fd);
  EXPECT_TRUE(text.ends_with("}\n"));
  EXPECT_THAT(more, HasSubstr("lines lost"));
  EXPECT_THAT(more, HasSubstr("after"));
}

}  // namespace
}  // namespace vitrine
