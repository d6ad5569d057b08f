#include "load/server_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vitrine::load {
namespace {

using testing::HasSubstr;

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

TEST(ServerProcess, WaitsForTheLineAndStops) {
  auto server = ServerProcess::start(
      shell("trap 'exit 0' TERM; echo loading; sleep 0.1;"
            "echo 'vitrine is ready: http://127.0.0.1:123 (x)'; while :; do sleep 0.01; done"));
  ASSERT_TRUE(server.ok()) << server.error().message;
  EXPECT_EQ((*server)->url(), "http://127.0.0.1:123");
  auto stopped = (*server)->stop();
  EXPECT_TRUE(stopped.ok()) << stopped.error().message;
}

TEST(ServerProcess, ReportsAnEndWithoutBeingReady) {
  auto server = ServerProcess::start(shell("echo 'error: no such file' >&2; exit 1"));
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error().message, HasSubstr("error: no such file"));
  EXPECT_FALSE(ServerProcess::start({"/nonexistent/program"}).ok());
}

TEST(ServerProcess, GivesUpInTime) {
  auto server = ServerProcess::start(shell("exec sleep 30"), std::chrono::seconds(1));
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error().message, HasSubstr("not ready after 1 s"));
}

TEST(ServerProcess, TellsWhenTheServerEndedBadly) {
  auto server =
      ServerProcess::start(shell("trap 'exit 3' TERM; echo 'vitrine is ready: http://127.0.0.1:1';"
                                 "while :; do sleep 0.01; done"));
  ASSERT_TRUE(server.ok());
  auto stopped = (*server)->stop();
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message, HasSubstr("code 3"));
}

}  // namespace
}  // namespace vitrine::load
