// The limit on the time that a server takes to end.
#include "cli/server_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "formats/model_file.h"
#include "server/api.h"

namespace vitrine {
namespace {

// A server that does not end.
class Stuck final : public HttpServer {
 public:
  int port() const override { return 0; }
  HttpCounts counts() const override { return {}; }
  Status run() override { return Ok{}; }
  void stop_accepting() override {}
  void stop() override {}
  void reload() override {}
};

class FakeServer {
 public:
  FakeServer()
      : file_(std::move(*ModelFile::open(VT_FIXTURES "/golden/llama"))), signals_(drain(), true) {
    signals_.listening(http_);
  }
  void serve() { signals_.serving(api_, *file_); }
  static std::chrono::seconds drain() { return std::chrono::seconds(0); }

 private:
  Api api_;
  Stuck http_;
  std::unique_ptr<ModelFile> file_;
  ServerSignals signals_;
};

void wait_for_the_end() {
  ::sleep(60);
  ::_exit(0);
}

class Signals : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(Signals, TheProcessLeavesWhatDoesNotEnd) {
  auto stuck = [] {
    FakeServer server;
    server.serve();
    ::kill(::getpid(), SIGTERM);
    wait_for_the_end();
  };
  EXPECT_EXIT(stuck(), ::testing::ExitedWithCode(1), "draining(.|\n)*work did not end in time");
}

TEST_F(Signals, TheSecondSignalEndsAtOnce) {
  auto twice = [] {
    FakeServer server;
    server.serve();
    ::kill(::getpid(), SIGTERM);
    ::usleep(500'000);
    ::kill(::getpid(), SIGINT);
    wait_for_the_end();
  };
  EXPECT_EXIT(twice(), ::testing::ExitedWithCode(1), "\"draining\"[^\n]*\n$");
}

TEST_F(Signals, WhileLoadingTheSignalEndsTheProcess) {
  for (int signal : {SIGTERM, SIGINT}) {
    auto loading = [signal] {
      FakeServer server;
      ::kill(::getpid(), signal);
      wait_for_the_end();
    };
    EXPECT_EXIT(loading(), ::testing::KilledBySignal(signal), "stopped while loading");
  }
}

}  // namespace
}  // namespace vitrine
